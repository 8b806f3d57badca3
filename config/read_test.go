package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that is no job file is refused at once, however long it is, and not parsed.
func TestFilesThatAreNoJobs(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a program":      {"\x7fELF\x02\x00\x00" + strings.Repeat("a{\x90", 1<<20), "that is no job file: it is no text"},
		"another coding": {"# caf\xe9\n", "that is no job file: it is no text"},
		"brackets":       {"a = " + strings.Repeat("[", 900_000), "nested too deep"},
		"blocks":         {strings.Repeat("a {\n", 200_000), "nested too deep"},
		"operators":      {"a = " + strings.Repeat("!", 900_000), "nested too deep"},
		"conditions":     {"a = " + strings.Repeat("b?c:", 200_000), "nested too deep"},
		"templates":      {"a = " + strings.Repeat(`"${`, 200_000), "nested too deep"},
		"a long text":    {strings.Repeat("a = 1\n", 1<<18), "it has more than 1024 KiB"},
	} {
		path := filepath.Join(t.TempDir(), "job.hcl")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if job, found := Load(path, Options{}); job != nil || len(found) != 1 || !strings.Contains(found[0].Error(), c.want) {
			t.Errorf("%s: %v", name, found)
		}
		if _, err := SiteNames(path); err == nil {
			t.Errorf("%s has sites", name)
		}
	}
}

// TestPipeAsJobFile: a pipe is called one, whether somebody writes to it or not.
func TestPipeAsJobFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.hcl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if job, found := Load(path, Options{}); job != nil || len(found) != 1 || !strings.Contains(found[0].Error(), "that is no job file: it is a pipe and no regular file") {
		t.Error(found)
	}
}
