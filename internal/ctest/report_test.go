package ctest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/internal/jobreport"
)

// TestReport: calls of C programs are counted, also those that C does without Go, and so are their bytes.
func TestReport(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "counted.c")
	path := filepath.Join(t.TempDir(), "%s.html")
	succeed(t, onSites(t, k, []string{program}, fmt.Sprintf("report { path = %q }", path)), "counted")
	for site, name := range []string{"alpha", "beta"} {
		r, err := jobreport.Read(filepath.Join(filepath.Dir(path), name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		called := make(map[string]uint64)
		for _, c := range r.Calls {
			called[c.Name] = c.Calls
		}
		n := called["MPI_Sendrecv"] // procs that are known: the other site's may have gone before they were asked
		for call, want := range map[string]uint64{"MPI_Send": 3000, "MPI_Recv": 3000, "MPI_Allreduce": 3000, "MPI_Ibarrier": 1, "MPI_Wait": 1, "MPI_Finalize": 1} {
			if called[call] != want*n || n < 2 {
				t.Errorf("%s knows of %d calls of %s by %d procs", name, called[call], call, n)
			}
		}
		for _, rank := range []int{2 * site, 2*site + 1} {
			var bytes uint64
			for _, s := range r.Sent {
				if s.From == rank && s.To == rank^1 {
					bytes = s.Bytes
				}
			}
			if bytes < 3000*64+8 || bytes > 3000*64+1<<20 {
				t.Errorf("%s: rank %d has sent %d bytes to %d", name, rank, bytes, rank^1)
			}
			var waited int64
			for _, w := range r.Waits {
				if w.From == rank && w.For == rank^1 && w.Cause == "recv" {
					waited = w.Time
				}
			}
			if waited <= 0 {
				t.Errorf("%s: rank %d has never waited for %d: %+v", name, rank, rank^1, r.Waits)
			}
		}
		for _, x := range r.Ranks {
			if x.Time > 0 && (x.Classes["collective"] <= 0 || x.Waited > x.Time) {
				t.Errorf("%s: %+v", name, x)
			}
		}
	}
}
