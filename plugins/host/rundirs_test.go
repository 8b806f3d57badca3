package host

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRunDirsListsTheLiving: what a killed process has left is removed, unless another
// process is doing that or making directories just then; RunDirs does not wait for it.
func TestRunDirsListsTheLiving(t *testing.T) {
	base, uid := t.TempDir(), os.Geteuid()
	if dirs := RunDirs(base, uid); dirs != nil {
		t.Errorf("before there was any: %q", dirs)
	}
	var all []*RunDir
	for range 3 {
		d, err := NewRunDir(base)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		all = append(all, d)
	}
	if dirs := RunDirs(base, uid); len(dirs) != 3 {
		t.Errorf("%q", dirs)
	}
	parent := filepath.Dir(all[0].Path)
	if dirs := RunDirs(parent+"/", uid); len(dirs) != 3 {
		t.Errorf("by the name of the folder itself: %q", dirs)
	}
	all[1].lock.Close() // as the kernel does for a process that was killed
	busy, err := lock(filepath.Join(parent, "lock"), unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	if dirs := RunDirs(base, uid); len(dirs) != 3 {
		t.Errorf("while another one sweeps: %q", dirs)
	}
	busy.Close()
	dirs := RunDirs(base, uid)
	slices.Sort(dirs)
	want := []string{all[0].Path, all[2].Path}
	if slices.Sort(want); !slices.Equal(dirs, want) {
		t.Errorf("%q, want %q", dirs, want)
	}
}

func TestRunDirsOfAForgedPlace(t *testing.T) {
	base := t.TempDir()
	parent := filepath.Join(base, "impi-"+strconv.Itoa(os.Geteuid()))
	if err := os.MkdirAll(filepath.Join(parent, "1-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	if dirs := RunDirs(base, os.Geteuid()); dirs != nil {
		t.Errorf("others may have made %q", dirs)
	}
}

// TestRunDirsGoWhileOthersSweep: a directory is removed whole while other processes look for those
// of processes that have ended.
func TestRunDirsGoWhileOthersSweep(t *testing.T) {
	base := t.TempDir()
	over := make(chan struct{})
	var sweepers sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					RunDirs(base, os.Geteuid())
				}
			}
		})
	}
	for range 300 {
		d, err := NewRunDir(base)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
			break
		}
	}
	close(over)
	sweepers.Wait()
}
