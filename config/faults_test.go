package config

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// testOptions are the same on every machine.
func testOptions() Options {
	return Options{
		Builtins: two,
		Environ: []string{
			"HOST_ADDRESS=127.0.0.9", "JOB_KEY=0xC0FFEE", "OTHER_KEY=7", "PORT=7800",
			"BAD_NAME=a b", "FOUR=four", "BIG=1048576",
		},
		CheckPort: func(at netip.AddrPort) error {
			return map[uint16]error{
				9: syscall.EADDRINUSE, 10: syscall.EADDRNOTAVAIL, 11: syscall.EACCES, 12: errors.New("no memory"),
			}[at.Port()]
		},
	}
}

// golden compares what with the file at path, or writes that file.
func golden(t *testing.T, path, what string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(what), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if what != string(want) {
		t.Errorf("%s differs\ngot:\n%s\nwant:\n%s", path, what, want)
	}
}

// Each file in testdata/faults has one sort of fault. The text file beside it has the expected
// output: all faults, in the order of the file.
func TestFaults(t *testing.T) {
	privateKeys(t)
	files, err := filepath.Glob("testdata/faults/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".hcl"), func(t *testing.T) {
			job, diags := Load(file, testOptions())
			if job != nil || !diags.HasErrors() {
				t.Errorf("loaded with %v", diags)
			}
			var text strings.Builder
			if err := diags.WriteText(&text, false); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".hcl")+".txt", text.String())
			line := 0
			for _, d := range diags {
				if d.Remedy == "" {
					t.Errorf("no remedy: %v", d)
				}
				if d.Pos.Line < line {
					t.Errorf("not in file order: %v", d)
				}
				line = d.Pos.Line
			}
		})
	}
}

// privateKeys sets the modes of key files, which version control does not keep.
func privateKeys(t *testing.T) {
	t.Helper()
	for _, name := range []string{"job", "malformed", "long", "empty"} {
		if err := os.Chmod("testdata/"+name+".key", 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod("testdata/open.key", 0o644); err != nil {
		t.Fatal(err)
	}
}
