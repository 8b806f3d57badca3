package ctest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/plugins/host"
)

// TestThreadThatComputes: two C procs that wait for each other are no deadlock while a thread of
// one computes, which will send. Their job has no file, and is called after its program.
func TestThreadThatComputes(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "busy.c")
	dir, err := os.MkdirTemp("", "busy") // a short name: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	enough := filepath.Join(dir, "enough")
	over := make(chan string)
	go func() {
		output, _ := run(t, []string{k.Command("impiexec"), "-n", "2", program, enough}, "XDG_RUNTIME_DIR="+dir)
		over <- output
	}()
	computes := false
	for limit := time.Now().Add(runLimit / 2); !computes && time.Now().Before(limit); {
		for _, j := range status.AskNodes(t.Context(), host.RunDirs(dir, os.Geteuid()), runLimit/2, links.Request{Calls: true}) {
			for _, p := range j.Sites[0].Ranks {
				if p.Blocked == nil || !p.Blocked.Computes {
					continue
				}
				computes = true
				if _, what := status.Describe(&p); p.Rank != 1 || j.Name != "busy" || j.Deadlock != nil || !strings.HasSuffix(what, "(from rank 0, tag 3 in MPI_COMM_WORLD); other threads compute") {
					t.Errorf("job %s, rank %d: %s; %+v", j.Name, p.Rank, what, j.Deadlock)
				}
			}
		}
	}
	if !computes {
		t.Error("no thread computes")
	}
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if output := <-over; !strings.Contains(output, "rank 0 got 1") || !strings.Contains(output, "rank 1 got 1") {
		t.Error(output)
	}
}
