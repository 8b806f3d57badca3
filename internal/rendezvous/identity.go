package rendezvous

import (
	"path/filepath"

	"github.com/openimpi/impi/transports/identity"
)

// Identity is that of a site, or of impi-server.
type Identity = identity.Identity

// LoadIdentity reads the files that the settings cert, key and ca name; relative names
// start from dir. Setting peers may be there too.
func LoadIdentity(given map[string]any, dir string) (*Identity, error) {
	settings := map[string]any{"peers": given["peers"]}
	for _, name := range []string{"cert", "key", "ca"} {
		path, _ := given[name].(string)
		if path != "" && !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		settings[name] = path
	}
	return identity.Load(settings)
}
