package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/config"
)

// TestTimeline: a Go program's calls are all in its timeline, short ones as one entry, unless each is to be one;
// a call that waits has an entry of its own, and no two entries overlap.
func TestTimeline(t *testing.T) {
	for _, transport := range []string{"shm", "unix"} {
		for _, short := range []string{"", config.ShortEach} {
			t.Run(transport+" "+short, func(t *testing.T) {
				job := withMemory(route(testJob("traced", 2), config.Route{Prefer: []string{transport}, Direct: true}))
				dir := t.TempDir()
				job.Sites[0].Trace = config.Trace{Calls: filepath.Join(dir, "%r.json"), Short: short}
				runs(t, job, "traced")
				for rank := range 2 {
					wantCalls(t, filepath.Join(dir, fmt.Sprint(rank, ".json")), rank, short == "")
				}
			})
		}
	}
}

// wantCalls wants the calls of a rank of traced in a file.
func wantCalls(t *testing.T, path string, rank int, merged bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type some struct{ Calls, Bytes int }
	var events []struct {
		Ph, Name string
		Ts, Dur  float64
		Args     struct {
			Bytes int
			Send  some `json:"MPI_Send"`
			Recv  some `json:"MPI_Recv"`
		}
	}
	if err := json.Unmarshal(b, &events); err != nil {
		t.Fatal(err)
	}
	const (
		rounds, message, long = 2000, 8, 8 << 20
		overlap               = 100     // what times can move by while the clock is compared, in us
		waits                 = 25.0    // us, in which no machine copies the long message, and what is merged is shorter
		apart, whole          = 10, 200 // us, between calls that are merged, and of an entry of them
	)
	sends, recvs, entries, longest, ended, last, unmerged := some{}, some{}, 0, 0.0, 0.0, 0.0, 0
	for _, e := range events {
		if e.Ph != "X" {
			continue
		}
		if e.Ts+overlap < ended || e.Dur < 0 {
			t.Errorf("%s at %f overlaps what ends at %f", e.Name, e.Ts, ended)
		}
		if entries > 0 && last < waits && e.Dur < waits && e.Ts-ended < apart && last+e.Dur < whole-2*apart {
			unmerged++
		}
		entries, ended, last = entries+1, e.Ts+e.Dur, e.Dur
		one := some{1, e.Args.Bytes}
		switch e.Name {
		case "MPI_Send":
			e.Args.Send = one
			if e.Args.Bytes == long {
				longest = e.Dur
			}
		case "MPI_Recv":
			e.Args.Recv = one
		}
		sends.Calls, sends.Bytes = sends.Calls+e.Args.Send.Calls, sends.Bytes+e.Args.Send.Bytes
		recvs.Calls, recvs.Bytes = recvs.Calls+e.Args.Recv.Calls, recvs.Bytes+e.Args.Recv.Bytes
	}
	wantSends, wantRecvs := some{rounds + 1, rounds*message + long}, some{rounds, rounds * message}
	if rank == 1 {
		wantSends, wantRecvs = wantRecvs, wantSends
	}
	if sends != wantSends || recvs != wantRecvs {
		t.Errorf("rank %d has sent %+v and received %+v", rank, sends, recvs)
	}
	if rank == 0 && longest < waits {
		t.Errorf("the long message was sent in %f us", longest)
	}
	// On a slow machine all calls may be long ones.
	if merged && unmerged > rounds/10 || !merged && entries < 2*rounds {
		t.Errorf("rank %d: %d entries, of which %d are short ones at others", rank, entries, unmerged)
	}
}
