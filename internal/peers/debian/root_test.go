package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoFolders wants the checkout first, and then Go, in which enter looks for it.
func TestGoFolders(t *testing.T) {
	got, err := goFolders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(got[0], "internal", "peers", "debian")); err != nil {
		t.Errorf("the checkout is %s: %v", got[0], err)
	}
	if _, err := os.Stat(filepath.Join(got[1], "bin", "go")); err != nil {
		t.Errorf("Go is in %s: %v", got[1], err)
	}
	t.Chdir(t.TempDir())
	if got, err := goFolders(t.Context()); err == nil || !strings.Contains(err.Error(), "no checkout") {
		t.Errorf("outside of a checkout: %q, %v", got, err)
	}
}

// TestNames refuses what would be more than a name to debootstrap and apt-get.
func TestNames(t *testing.T) {
	for name, good := range map[string]bool{"trixie": true, "": false, "../sid": false, "--help": false, "a b": false} {
		if releases.MatchString(name) != good {
			t.Errorf("release %q: good is %v", name, !good)
		}
	}
	for names, good := range map[string]bool{"g++-14,libucx-dev": true, usual: true, "": false, "-y": false, "a,,b": false, "a,-o": false, "a b": false} {
		if packages.MatchString(names) != good {
			t.Errorf("packages %q: good is %v", names, !good)
		}
	}
}

// TestFails opens a release as somebody who is not root, or where there is no debootstrap: the error
// says what to do.
func TestFails(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Setenv("PATH", "")
	}
	t.Setenv("IMPI_PEERS", t.TempDir())
	_, err := open(t.Context(), "trixie")
	if err == nil || !strings.Contains(err.Error(), "apt-get install debootstrap") && !strings.Contains(err.Error(), "sudo") {
		t.Errorf("%v: there is no remedy", err)
	}
}
