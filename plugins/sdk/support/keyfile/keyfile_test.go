package keyfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestPrivate(t *testing.T) {
	for _, c := range []struct {
		mode           fs.FileMode
		ofRoot, asRoot bool
		want           bool
	}{
		{0o600, false, false, true}, {0o400, true, true, true}, {0o640, false, false, false}, {0o604, false, false, false},
		{0o440, true, false, true}, {0o640, true, false, true}, {0o440, true, true, false},
		{0o460, true, false, false}, {0o444, true, false, false}, {0o441, true, false, false},
	} {
		if got := private(c.mode, c.ofRoot, c.asRoot); got != c.want {
			t.Errorf("mode %04o, root's %t, as root %t: %t", c.mode, c.ofRoot, c.asRoot, got)
		}
	}
	file := filepath.Join(t.TempDir(), "key")
	for mode, want := range map[fs.FileMode]bool{0o600: true, 0o644: false} {
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || Private(info) != want {
			t.Errorf("mode %04o: %t, %v", mode, !want, err)
		}
	}
}
