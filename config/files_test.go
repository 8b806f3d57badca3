package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// faultsWith are the faults of a job of two procs with one more block.
func faultsWith(block, dir string) Diagnostics {
	_, diags := load(&faults{file: "job.hcl"}, []byte(block+`
program { command = ["true"] }
site "alpha" {
  client = 0
  host {
    address = "127.0.0.1"
    procs   = 2
  }
}
job { embedded_server {} }
`), dir, testOptions())
	return diags
}

// TestFilesThatAreNoFiles: a report would replace, and a timeline empty or block at, what is no
// regular file.
func TestFilesThatAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("old-1"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("pipe-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("old-1"), at("link-1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, is := range map[string]string{"old": "", "new": "", "pipe": "a pipe", "link": "a symbolic link", "folder": "a folder"} {
		for _, block := range []string{`report { path = "` + at(name) + `-1" }`, `trace { calls = "` + at(name) + `-%r" }`} {
			diags := faultsWith(block, dir)
			if is == "" {
				if len(diags) > 0 {
					t.Errorf("%s: %v", block, diags)
				}
				continue
			}
			if len(diags) != 1 || diags[0].Problem != at(name)+"-1 is "+is+" and no regular file" || diags[0].Pos.Line != 1 || !strings.Contains(diags[0].Remedy, "not there yet") {
				t.Errorf("%s: %+v", block, diags)
			}
		}
	}
}

// TestFilesWithoutFolder: nobody would hear before the end of the job that they cannot be written.
func TestFilesWithoutFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "there"), 0o700); err != nil {
		t.Fatal(err)
	}
	for folder, problem := range map[string]string{"there": "", "file": "is not a folder", "gone": "there is no folder"} {
		for _, block := range []string{
			`report { path = "` + folder + `/job-%j.html" }`, `trace { calls = "` + folder + `/calls-%r.json" }`, `log { trace = "` + folder + `/packets-%r.txt" }`,
		} {
			diags := faultsWith(block, dir)
			if problem == "" {
				if len(diags) > 0 {
					t.Errorf("%s: %v", block, diags)
				}
				continue
			}
			if len(diags) != 1 || !strings.Contains(diags[0].Problem, problem) || !strings.Contains(diags[0].Problem, filepath.Join(dir, folder)) || diags[0].Pos.Line != 1 {
				t.Errorf("%s: %+v", block, diags)
			}
		}
	}
}

// TestReportStartsAtTheFile: like all paths of a job file, whatever is in the name of its folder.
func TestReportStartsAtTheFile(t *testing.T) {
	r := Report{Path: "out/%j.html", Dir: "/srv/100%s"}
	if got := r.Name("heat", "alpha", 1); got != "/srv/100%s/out/heat.html" {
		t.Error(got)
	}
	r.Path = "/var/%j.html"
	if got := r.Name("heat", "alpha", 1); got != "/var/heat.html" {
		t.Error(got)
	}
}
