package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
)

// In traced, rank 0 sends some messages with these tags, each after so many short ones, when it has
// computed for so long.
const (
	lates      = 3
	lateTag    = 6
	lateRounds = 1000
	computes   = 100 * time.Millisecond
)

// TestTimeline: a Go program's calls are all in its timeline, short ones as one entry, unless each
// is to be one; a call that waits has an entry of its own, and no two entries overlap.
func TestTimeline(t *testing.T) {
	for _, transport := range []string{"shm", "unix"} {
		for _, short := range []string{"", config.ShortEach} {
			t.Run(transport+" "+short, func(t *testing.T) {
				job := withMemory(route(testJob("traced", 2), config.Route{Prefer: []string{transport}, Direct: true}))
				dir := t.TempDir()
				job.Sites[0].Trace = config.Trace{Calls: filepath.Join(dir, "%r.json"), Short: short}
				runs(t, job, "traced")
				var came [2][lates]call
				for rank := range 2 {
					came[rank] = wantCalls(t, filepath.Join(dir, fmt.Sprint(rank, ".json")), rank, short == "")
				}
				wantWaited(t, came[0], came[1])
			})
		}
	}
}

// overlap is what times can move by while the clock is compared, in us.
const overlap = 100

// call is when a call was, and the entry before it began, in us.
type call struct{ before, begun, ended float64 }

// wantWaited wants each receive to have lasted until its sender had computed. Most must have begun
// before, but for one or two where this machine had something else to do.
func wantWaited(t *testing.T, sent, received [lates]call) {
	t.Helper()
	early := 0
	us := float64(computes.Microseconds())
	for i, s := range sent {
		if s.before == 0 || received[i].ended < s.before+us-overlap {
			t.Errorf("%+v is received by %+v", s, received[i])
		}
		if received[i].begun < s.begun-us/2 {
			early++
		}
	}
	if early == 0 {
		t.Errorf("%+v are received by %+v", sent, received)
	}
}

// wantCalls wants the calls of a rank of traced in a file, and returns the one of the late message.
func wantCalls(t *testing.T, path string, rank int, merged bool) (came [lates]call) {
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
			Tag   int
			Send  some `json:"MPI_Send"`
			Recv  some `json:"MPI_Recv"`
		}
	}
	if err := json.Unmarshal(b, &events); err != nil {
		t.Fatal(err)
	}
	const (
		rounds, message, long = lates * lateRounds, 8, 8 << 20
		waits                 = 25.0    // us, in which no machine copies the long message, and what is merged is shorter
		apart, whole          = 10, 200 // us, between calls that are merged, and of an entry of them
	)
	sends, recvs, entries, longest, begun, ended, last, unmerged := some{}, some{}, 0, 0.0, 0.0, 0.0, 0.0, 0
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
		if e.Name == "short calls" && e.Dur > whole+overlap {
			t.Errorf("rank %d: short calls take %f us", rank, e.Dur)
		}
		if i := e.Args.Tag - lateTag; i >= 0 && i < lates {
			came[i] = call{begun, e.Ts, e.Ts + e.Dur}
		}
		begun = e.Ts
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
	wantSends, wantRecvs := some{rounds + 1 + lates, (rounds+lates)*message + long}, some{rounds, rounds * message}
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
	return came
}
