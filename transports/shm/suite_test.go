package shm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/shm"
)

func privateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSuite(t *testing.T) {
	for name, settings := range map[string]map[string]any{
		"file":     {},
		"abstract": {"abstract": true},
		"small":    {"ring_size": 4096.0},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				x := shm.New()
				given := transports.Defaults(x.Schema())
				for k, v := range settings {
					given[k] = v
				}
				if err := x.Configure(given); err != nil {
					t.Fatal(err)
				}
				return transporttest.Harness{
					Transport: x, Dialler: shm.New(),
					Listen: transports.ListenSpec{Dir: privateDir(t), Name: "l"},
				}
			})
		})
	}
}
