package ctest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/jobreport"
)

// TestReport: calls of C programs are counted, also those that C does without Go, and so are their bytes.
func TestReport(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "counted.c")
	path := filepath.Join(t.TempDir(), "%s.html")
	lines := filepath.Join(t.TempDir(), "calls-%r.json")
	succeed(t, onSites(t, k, []string{program}, fmt.Sprintf("report { path = %q }\ntrace { calls = %q }", path, lines)), "counted")
	var files []string
	for rank := range 4 {
		files = append(files, strings.Replace(lines, "%r", fmt.Sprint(rank), 1))
		wantTimeline(t, files[rank], rank)
	}
	wantFormat(t, files)
	t.Run("in Chromium", func(t *testing.T) { wantViewed(t, files) })
	for site, name := range []string{"alpha", "beta"} {
		r, err := jobreport.Read(filepath.Join(filepath.Dir(path), name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		called := make(map[string]uint64)
		for _, c := range r.Calls {
			called[c.Name] = c.Calls
		}
		for call, want := range map[string]uint64{"MPI_Send": 3000, "MPI_Recv": 3000, "MPI_Allreduce": 3000, "MPI_Sendrecv": 1, "MPI_Ibarrier": 1, "MPI_Wait": 1, "MPI_Finalize": 1} {
			if n := called[call]; n < 2*want || n > 4*want { // the other site may have gone before it was asked again
				t.Errorf("%s knows of %d calls of %s", name, n, call)
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

// wantTimeline wants a proc's calls in a file, or a note of how many there was no room for.
func wantTimeline(t *testing.T, path string, rank int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Ph, Name string
		Tid      int
		Ts, Dur  float64
		Args     struct {
			Peer, Tag, Bytes int
			Comm             string
		}
	}
	if err := json.Unmarshal(b, &events); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	calls, left, before := make(map[string]int), 0, 0.0
	for _, e := range events {
		switch e.Ph {
		case "i":
			_, _ = fmt.Sscan(e.Name, &left)
		case "X":
			calls[e.Name]++
			if e.Name == "MPI_Send" && (e.Args.Peer != rank^1 || e.Args.Tag != 1 || e.Args.Bytes != 64 || e.Args.Comm != "MPI_COMM_WORLD") || e.Dur < 0 || e.Ts < before || e.Tid != rank {
				t.Fatalf("%s: %+v", path, e)
			}
			before = e.Ts
		}
	}
	if n := calls["MPI_Send"] + calls["MPI_Recv"] + calls["MPI_Allreduce"] + left; n < 9000 || n > 9003 || calls["MPI_Send"] == 0 {
		t.Errorf("%s: %v, and %d more", path, calls, left)
	}
}
