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

// TestReport: calls of C programs are counted, also those that C does without Go, and so are their
// bytes.
func TestReport(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "counted.c")
	path := filepath.Join(t.TempDir(), "%s.html")
	lines := filepath.Join(t.TempDir(), "calls-%r.json")
	succeed(t, onSites(t, k, []string{program}, fmt.Sprintf("report { path = %q }\ntrace { calls = %q }", path, lines)), "counted")
	var files []string
	for rank := range 4 {
		files = append(files, strings.Replace(lines, "%r", fmt.Sprint(rank), 1))
		wantTimeline(t, files[rank], rank, true)
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

// TestTimeline: the calls of C programs are all in the file where nothing else has them measured,
// so that those that C does without Go are not looked at one by one; and each is an entry if the
// job says so.
func TestTimeline(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "counted.c")
	for _, short := range []string{"merge", "each"} {
		t.Run(short, func(t *testing.T) {
			lines := filepath.Join(t.TempDir(), "calls-%r.json")
			succeed(t, onSites(t, k, []string{program}, fmt.Sprintf("trace {\n calls = %q\n short = %q\n}", lines, short)), "counted")
			var files []string
			for rank := range 4 {
				files = append(files, strings.Replace(lines, "%r", fmt.Sprint(rank), 1))
				wantTimeline(t, files[rank], rank, short == "merge")
			}
			wantFormat(t, files)
		})
	}
}

// TestTimelineWaits: a receive that waits in C is an entry from about when it began until its
// message came, also after calls that were not looked at one by one, and no short calls are said to
// have been made meanwhile.
func TestTimelineWaits(t *testing.T) {
	const (
		times, rounds, late = 3, 2000, 6
		computes            = 100000.0 // us, for which rank 0 sends nothing
		longest             = 200.0    // us, of an entry of short calls
	)
	k := kit(t)
	program := compiled(t, k, "waited.c")
	lines := filepath.Join(t.TempDir(), "calls-%r.json")
	succeed(t, onSites(t, k, []string{program}, fmt.Sprintf("trace { calls = %q }", lines)), "waited")
	var events [2][]timed
	var came [2][times]timed   // the call of each late message
	var before [2][times]timed // the entry before it
	for rank := range events {
		b, err := os.ReadFile(strings.Replace(lines, "%r", fmt.Sprint(rank), 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &events[rank]); err != nil {
			t.Fatal(err)
		}
		counted := make(map[string]int)
		var last timed
		for _, e := range events[rank] {
			if e.Ph != "X" {
				continue
			}
			list, err := e.calls()
			if err != nil || e.Name == "short calls" && e.Dur > longest+overlap {
				t.Errorf("rank %d: %+v: %v", rank, e, err)
			}
			for name, x := range list {
				counted[name] += x.Calls
				if x.Tag != nil && *x.Tag >= late && *x.Tag < late+times {
					came[rank][*x.Tag-late], before[rank][*x.Tag-late] = e, last
				}
			}
			last = e
		}
		if sends, recvs := times*(rounds+1-rank), times*(rounds+rank); counted["MPI_Send"] != sends || counted["MPI_Recv"] != recvs {
			t.Errorf("rank %d: %v, want %d sends, %d receives", rank, counted, sends, recvs)
		}
	}
	early := 0
	for i, sent := range came[0] {
		received := came[1][i]
		if sent.Name != "MPI_Send" || received.Name != "MPI_Recv" || received.Ts+received.Dur < before[0][i].Ts+computes-overlap {
			t.Errorf("%+v after %+v is received by %+v", sent, before[0][i], received)
		}
		if received.Ts < sent.Ts-computes/2 {
			early++
		}
	}
	if early == 0 { // not even where this machine had nothing else to do
		t.Errorf("%+v are received by %+v", came[0], came[1])
	}
}

// timed is an event of a timeline.
type timed struct {
	Ph, Name string
	Tid      int
	Ts, Dur  float64
	Args     json.RawMessage
}

// about is what a timeline says of a call, or of the calls of one name that are one entry with
// others.
type about struct {
	Calls            int
	Peer, Tag, Bytes *int
	Source           *int
	Comm             string
}

// calls are the calls of an entry by name.
func (e *timed) calls() (map[string]about, error) {
	if !strings.HasPrefix(e.Name, "short calls") {
		var one about
		err := json.Unmarshal(e.Args, &one)
		one.Calls = 1
		return map[string]about{e.Name: one}, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(e.Args, &all); err != nil {
		return nil, err
	}
	list, want, sum := make(map[string]about), 0, 0
	for name, text := range all {
		if name == "calls" {
			if err := json.Unmarshal(text, &want); err != nil {
				return nil, err
			}
			continue
		}
		var some about
		if err := json.Unmarshal(text, &some); err != nil {
			return nil, err
		}
		list[name] = some
		sum += some.Calls
	}
	if sum != want || sum < 2 && e.Name == "short calls" {
		return nil, fmt.Errorf("%d calls are said to be %d", sum, want)
	}
	return list, nil
}

// from is the rank of which a rank of counted.c receives what another one gets.
func from(rank int) int { return (rank + 3) % 4 }

// wantTimeline wants a proc's calls in a file, all of them, with some as one entry if merged is
// set.
func wantTimeline(t *testing.T, path string, rank int, merged bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var events []timed
	if err := json.Unmarshal(b, &events); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	calls, entries, ended := make(map[string]int), 0, 0.0
	for _, e := range events {
		if e.Ph == "i" {
			t.Errorf("%s: %s", path, e.Name) // there is room for all
		}
		if e.Ph != "X" {
			continue
		}
		list, err := e.calls()
		if err != nil || e.Dur < 0 || e.Ts+overlap < ended || e.Tid != rank {
			t.Fatalf("%s: %+v after %f: %v", path, e, ended, err)
		}
		entries, ended = entries+1, e.Ts+e.Dur
		for name, x := range list {
			calls[name] += x.Calls
			if name == "MPI_Send" && (*x.Peer != rank^1 || *x.Tag != 1 || *x.Bytes != 64*x.Calls || x.Comm != "MPI_COMM_WORLD") {
				t.Fatalf("%s: %+v", path, e)
			}
			exchange := name == "MPI_Sendrecv" || name == "MPI_Sendrecv_replace"
			if exchange && (x.Source == nil || *x.Source != from(rank) || x.Peer == nil || *x.Peer != (rank+1)%4) || !exchange && x.Source != nil {
				t.Errorf("%s: %s has %+v", path, name, x)
			}
		}
	}
	for name, n := range map[string]int{"MPI_Send": 3000, "MPI_Recv": 3000, "MPI_Allreduce": 3000, "MPI_Sendrecv": 1, "MPI_Sendrecv_replace": 1, "MPI_Ibarrier": 1, "MPI_Wait": 1} {
		if calls[name] != n {
			t.Errorf("%s: %d calls of %s", path, calls[name], name)
		}
	}
	if all := 9004; (entries < all) != merged {
		t.Errorf("%s: %d entries for %d calls", path, entries, all)
	}
}
