package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

func init() {
	for name, f := range windowWaits {
		programs["window "+name] = func() {
			world := initialize()
			w, err := world.WinAllocate(64, 8, nil)
			check(err)
			check(w.SetName("halo"))
			f(world, w)
			panic("nobody has stopped it")
		}
	}
}

// windowWaits are programs that stop for ever in a window, or with one.
var windowWaits = map[string]func(world *mpi.Comm, w *mpi.Win){
	"locks": func(world *mpi.Comm, w *mpi.Win) { // of two: each has its own memory locked, and wants the other's
		check(w.Lock(mpi.LockExclusive, world.Rank(), 0))
		check(mpi.Barrier(world))
		other, err := world.WinAllocate(64, 8, nil) // whose lock the other one does not hold
		check(err)
		check(other.LockAll(0))
		check(w.Lock(mpi.LockShared, 1-world.Rank(), 0))
	},
	"lock and message": func(world *mpi.Comm, w *mpi.Win) { // of three: 0 holds the lock at 1 for which 2 waits, and waits for 2
		var x [1]int64
		if world.Rank() == 0 {
			check(w.Lock(mpi.LockShared, 1, 0))
			check(mpi.Put(w, x[:], 1, 0))
			check(w.Flush(1))
		}
		check(mpi.Barrier(world))
		switch world.Rank() {
		case 0:
			_, _ = mpi.Recv(world, x[:], 2, 5)
		case 1:
			_, _ = mpi.Recv(world, x[:], 0, 5)
		default:
			_ = w.Lock(mpi.LockExclusive, 1, 0)
		}
	},
	"lock of all": func(world *mpi.Comm, w *mpi.Win) { // of two
		var x [1]int64
		if world.Rank() == 0 {
			check(w.Lock(mpi.LockExclusive, 0, 0))
		}
		check(mpi.Barrier(world))
		if world.Rank() == 0 {
			_, _ = mpi.Recv(world, x[:], 1, 5)
		}
		_ = w.LockAll(0)
	},
	"post": func(world *mpi.Comm, w *mpi.Win) { // of two: 0 waits for the post of 1, which waits for a message of 0
		var x [1]int64
		if world.Rank() == 0 {
			check(w.Start(members(world, 1), 0))
		}
		_, _ = mpi.Recv(world, x[:], 0, 5)
	},
	"complete": func(world *mpi.Comm, w *mpi.Win) { // of two: 0 waits for 1 to complete, which waits for a message of 0
		var x [1]int64
		if world.Rank() == 0 {
			check(w.Post(members(world, 1), 0))
			check(w.Wait())
		}
		check(w.Start(members(world, 0), 0))
		_, _ = mpi.Recv(world, x[:], 0, 5)
	},
	"fence": func(world *mpi.Comm, w *mpi.Win) { // of two: 1 does not come
		var x [1]int64
		if world.Rank() == 0 {
			check(mpi.Barrier(world))
			check(w.Fence(0))
		}
		check(mpi.Barrier(world))
		_, _ = mpi.Recv(world, x[:], 0, 5)
	},
}

func members(world *mpi.Comm, ranks ...int) *mpi.Group {
	all, err := world.Group()
	check(err)
	g, err := all.Incl(ranks)
	check(err)
	return g
}

// TestDeadlockByWindows: procs that wait for each other by windows are told so, with whom each
// waits for, on one host and over links between sites.
func TestDeadlockByWindows(t *testing.T) {
	for name, c := range map[string]struct {
		procs int
		cycle []int
		does  string // a proc
	}{
		"locks":            {2, []int{0, 1}, "in mpi.Win.Lock (the lock of rank 1 in window halo, which rank 1 holds)"},
		"lock and message": {3, []int{0, 2}, "in mpi.Win.Lock (the lock of rank 1 in window halo, which rank 0 holds)"},
		"lock of all":      {2, []int{0, 1}, "in mpi.Win.LockAll (the lock of rank 0 in window halo, which rank 0 holds)"},
		"post":             {2, []int{0, 1}, "in mpi.Win.Start (rank 1 to post in window halo)"},
		"complete":         {2, []int{0, 1}, "in mpi.Win.Wait (rank 1 to complete in window halo)"},
		"fence":            {2, []int{0, 1}, "in mpi.Win.Fence (rank 1 in window halo)"},
	} {
		for _, procs := range [][]int{{c.procs}, slices.Repeat([]int{1}, c.procs)} {
			t.Run(fmt.Sprint(name, " ", procs), func(t *testing.T) {
				all := start(t, testJob("window "+name, procs...))
				<-all[0].n.ready
				var last status.Job
				if !awaitStatus(t, all[0].n.dir.Path, func(j *status.Job) bool { last = *j; return j.Deadlock != nil }) {
					t.Fatalf("no deadlock of\n%s", doing(&last))
				}
				if got := doing(&last); !slices.Equal(last.Deadlock.Cycle, c.cycle) || !strings.Contains(got, c.does) {
					t.Errorf("cycle %v, want %v, and %q in\n%s", last.Deadlock.Cycle, c.cycle, c.does, got)
				}
			})
		}
	}
}

// awaitStatus asks a node of a job until it says what is wanted; false: it never does.
func awaitStatus(t *testing.T, dir string, wanted func(*status.Job) bool) bool {
	t.Helper()
	for over := time.Now().Add(patience); time.Now().Before(over); {
		jobs := status.AskNodes(t.Context(), []string{dir}, patience, links.Request{Sites: true, Calls: true})
		if len(jobs) == 1 && wanted(&jobs[0]) {
			return true
		}
	}
	return false
}

// doing is what the procs of a job do, a line each.
func doing(j *status.Job) string {
	var b strings.Builder
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			_, what := status.Describe(&j.Sites[i].Ranks[k])
			b.WriteString(what + "\n")
		}
	}
	return b.String()
}
