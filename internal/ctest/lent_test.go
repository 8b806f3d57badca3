package ctest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/vendors"
)

// lentJob has procs at two sites whose links are by data plane "rdma".
const lentJob = `job { embedded_server {} }
program { command = [%[1]q]  prefix_output = false }
route "*" {
  prefer = [%[4]q]
  direct = true
}
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = %[3]d }
  transport %[4]q { plugin = %[2]q }
}
site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = %[3]d }
  transport %[4]q { plugin = %[2]q }
}
`

// lentRun runs a program on two sites with so many procs each, by a plugin of examples/plugins. It
// returns what the plugin of each site has counted: registrations, and uses of what was registered.
func lentRun(t *testing.T, name, source string, procs int) (counts [][2]int) {
	t.Helper()
	k := kit(t)
	g, err := vendors.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := g.Build("../..")
	if missing, ok := errors.AsType[*vendors.MissingError](err); ok {
		skips.NotRun(t, missing.What, missing.Remedy)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "job.hcl")
	if err := os.WriteFile(file, fmt.Appendf(nil, lentJob, compiled(t, k, source), plugin, procs, name), 0o600); err != nil {
		t.Fatal(err)
	}
	out, status := run(t, []string{k.Command("impi-node"), "-config", file, "-log-level", "debug"})
	if status != 0 || !strings.Contains(out, "transport="+name+" data_plane=rdma") {
		t.Fatalf("status %d:\n%s", status, out)
	}
	for _, c := range regexp.MustCompile(`registrations=(\d+) used_again=(\d+)`).FindAllStringSubmatch(out, -1) {
		made, _ := strconv.Atoi(c[1])
		again, _ := strconv.Atoi(c[2])
		counts = append(counts, [2]int{made, again})
	}
	if len(counts) != 2 {
		t.Fatalf("%d plugins have counted:\n%s", len(counts), out)
	}
	return counts
}

// TestLentMemory: memory of MPI_Alloc_mem is registered once for each region, and used for each
// long message that is sent from there and received there.
func TestLentMemory(t *testing.T) {
	// Each proc: 6 rounds, two regions, and the slots for reading; in each round two sizes that are
	// lent, which leave twice from lent memory and come to it twice.
	for _, name := range []string{"pretend", "pretend-c"} {
		for _, c := range lentRun(t, name, "lent.c", 1) {
			if made, again := c[0], c[1]; made < 12 || made > 13 || again < 6*2*4-12 {
				t.Errorf("%s: %d registrations were made and used %d times again", name, made, again)
			}
		}
	}
}

// TestLentWindows: so is memory of windows. What the procs of a machine share is registered once for
// all of them.
func TestLentWindows(t *testing.T) {
	// In each of three rounds the two procs of a site have two shared windows and one each of their
	// own, and the slots for reading. Each proc sends and receives three messages in each round.
	for _, c := range lentRun(t, "pretend", "lentwin.c", 2) {
		if made, again := c[0], c[1]; made < 3*4 || made > 3*4+2 || made+again < 3*2*6 {
			t.Errorf("%d registrations were made and used %d times again", made, again)
		}
	}
}
