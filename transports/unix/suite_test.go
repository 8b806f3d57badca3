package unix_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/unix"
)

// privateDir is a folder as the transport wants it, below folders of the given
// names.
func privateDir(t *testing.T, below ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{t.TempDir()}, below...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSuite(t *testing.T) {
	for name, c := range map[string]struct {
		below    []string
		settings map[string]any
	}{
		"file":     {},
		"longPath": {below: []string{strings.Repeat("long", 30), "a b%"}},
		"abstract": {settings: map[string]any{"abstract": true}},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				u := unix.New()
				if err := u.Configure(c.settings); err != nil {
					t.Fatal(err)
				}
				return transporttest.Harness{
					Transport: u, Dialler: unix.New(), Large: int64(soak.Size(16<<20, 64<<20)),
					Listen: transports.ListenSpec{Dir: privateDir(t, c.below...), Name: "l"},
				}
			})
		})
	}
}
