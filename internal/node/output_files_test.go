package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// TestPartsAndFiles: procs of a site with several programs know which theirs is, and
// their output is in the files that the programs name.
func TestPartsAndFiles(t *testing.T) {
	job := testJob("appnum", 3)
	job.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(job.Dir, "out.0"), []byte("what was there before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site := &job.Sites[0]
	one, two := site.Program, site.Program
	one.OutFile, two.OutFile, two.ErrFile = "out.%r", "shared", "shared"
	site.Parts = []config.Part{{Procs: 1, Program: one}, {Procs: 2, Program: two}}
	all := start(t, job)
	wantNone(t, all)
	for file, want := range map[string]struct {
		text  string
		times int
	}{"out.0": {"appnum 0 true <nil>", 1}, "shared": {"appnum 1 true <nil>", 2}} {
		text, err := os.ReadFile(filepath.Join(job.Dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), want.text) != want.times || strings.Contains(string(text), "before") {
			t.Errorf("%s has\n%s\nwant %q %d times", file, text, want.text, want.times)
		}
	}
	if printed := all[0].out.String(); strings.Contains(printed, "appnum") {
		t.Errorf("printed as well:\n%s", printed)
	}
}
