package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/engine/proc"
)

// TestRegular: an older file is emptied; a pipe without a reader, one with a reader, and a link are
// refused at once and stay as they are.
func TestRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("old"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "read"} {
		if err := unix.Mkfifo(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := os.OpenFile(at("read"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := os.Symlink(at("old"), at("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "read", "link"} {
		if f, err := proc.CreateRegularFile(at(name)); err == nil || err.Error() != at(name)+" is no regular file" {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if b, err := os.ReadFile(at("old")); err != nil || string(b) != "old" {
		t.Errorf("through the link: %q, %v", b, err)
	}
	for _, name := range []string{"old", "new"} {
		f, err := proc.CreateRegularFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		f.Close()
	}
}
