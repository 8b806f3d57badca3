package identity

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// TestLoadOfNoFiles: what is no regular file is neither waited for nor read into the memory.
func TestLoadOfNoFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ca := pkitest.Authority(t)
	for path, kind := range map[string]string{pipe: "a pipe", "/dev/zero": "a device"} {
		for _, name := range []string{"cert", "key", "ca"} {
			given := pkitest.Site(t, "alpha", ca, ca, nil)
			given[name] = path
			if _, err := Load(given); err == nil || !strings.Contains(err.Error(), path+": it is "+kind+" and no regular file") {
				t.Errorf("%s = %s: %v", name, path, err)
			}
		}
	}
}
