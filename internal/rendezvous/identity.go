package rendezvous

import (
	"path/filepath"

	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// Identity is the certificate of a site, or of impi-server.
type Identity = identity.Identity

// LoadIdentity reads the files that the settings cert, key and ca name; relative names are
// relative to dir. It also uses the setting peers.
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
