package node

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

// lossOps are operations that cannot be done without rank 1, by the error that they give then. All
// others call them; rank 1 dies before.
var lossOps = map[string]func(w *mpi.Comm) error{
	"send": func(w *mpi.Comm) error { // what fits into a link may leave before the loss is known
		for {
			if err := mpi.Send(w, make([]float64, 20000), 1, 3); err != nil {
				return err
			}
		}
	},
	"recv":    func(w *mpi.Comm) error { _, err := mpi.Recv(w, make([]int64, 1), 1, 3); return err },
	"any":     func(w *mpi.Comm) error { _, err := mpi.Recv(w, make([]int64, 1), mpi.AnySource, 3); return err },
	"probe":   func(w *mpi.Comm) error { _, err := mpi.Probe(w, 1, 3); return err },
	"barrier": func(w *mpi.Comm) error { return mpi.Barrier(w) },
	"allreduce": func(w *mpi.Comm) error {
		return mpi.Allreduce(w, make([]float64, 5), make([]float64, 5), mpi.Sum)
	},
	"bcast": func(w *mpi.Comm) error { return mpi.Bcast(w, make([]float64, 200000), 1) },
	"dup":   func(w *mpi.Comm) error { _, err := w.Dup(); return err },
	"ibarrier": func(w *mpi.Comm) error {
		q, err := mpi.Ibarrier(w)
		check(err)
		_, err = q.Wait()
		return err
	},
	"pending": func(w *mpi.Comm) error {
		q, err := mpi.Irecv(w, make([]int64, 1), mpi.AnySource, 3)
		check(err)
		if _, err = q.Wait(); !errors.Is(err, mpi.ErrProcFailedPending) || q.Null() {
			panic(fmt.Sprint("the receive has ended: ", err))
		}
		check(mpi.Send(w, []int64{1}, w.Rank(), 3))
		if _, err := q.Wait(); err != nil {
			panic(err)
		}
		return err
	},
}

// meets has everybody talk to everybody, and rank 1 wait until all have done so.
func meets(w *mpi.Comm) {
	everybody(w)
	if w.Rank() != 1 {
		check(mpi.Send(w, []int64{1}, 1, 99))
		return
	}
	for range w.Size() - 1 {
		_, err := mpi.Recv(w, make([]int64, 1), mpi.AnySource, 99)
		check(err)
	}
}

func init() {
	for name, op := range lossOps {
		programs["loses "+name] = func() {
			w := initialize()
			meets(w)
			if w.Rank() == 1 {
				check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			}
			err := op(w)
			if !errors.Is(err, mpi.ErrProcFailed) {
				panic(fmt.Sprint("not the loss of a proc: ", err))
			}
			for r := range w.Size() { // the others are there
				if r == 1 || r == w.Rank() {
					continue
				}
				in := make([]int64, 1)
				_, err := mpi.Sendrecv(w, []int64{int64(w.Rank())}, r, 4, in, r, 4)
				check(err)
				if in[0] != int64(r) {
					panic("not what it has sent")
				}
			}
			fmt.Println("goes on:", mpi.ErrorClass(err))
			finalize()
		}
	}
}

func init() {
	programs["first"] = func() { // rank 0 ends as soon as it may
		check(mpi.Init())
		if mpi.World().Rank() == 0 {
			os.Exit(3)
		}
		if _, err := mpi.Recv(mpi.World(), make([]int64, 1), 0, 3); !errors.Is(err, mpi.ErrProcFailed) {
			panic(fmt.Sprint("not the loss of a proc: ", err))
		}
		finalize()
	}
	programs["alone"] = func() { // when the other one is lost
		w := initialize()
		everybody(w)
		if _, err := mpi.Recv(w, make([]int64, 1), 1-w.Rank(), 3); !errors.Is(err, mpi.ErrProcFailed) {
			panic(fmt.Sprint("not the loss of a proc: ", err))
		}
		fmt.Println("goes on alone")
		finalize()
	}
}

func init() {
	// A member that is in Finalize takes no part in a shrink, which rank 0 waits for.
	programs["leaves others"] = func() {
		w := initialize()
		meets(w)
		if w.Rank() == 1 {
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		if w.Rank() == 0 {
			_, err := w.Shrink()
			check(err)
		}
		if _, err := mpi.Recv(w, make([]int64, 1), 1, 3); !errors.Is(err, mpi.ErrProcFailed) {
			panic(fmt.Sprint("not the loss of a proc: ", err))
		}
		finalize()
	}
}

func init() {
	// A communicator is revoked by the loss of whom its info says: of rank 1, which dies.
	programs["loses in ranges"] = func() {
		w := initialize()
		ranged := func(c *mpi.Comm, value string) *mpi.Comm {
			info := mpi.NewInfo()
			check(info.Set("mpi_error_range", value))
			d, err := c.DupWithInfo(info)
			check(err)
			return d
		}
		left, err := w.Split(min(w.Rank(), 2)%2, 0)
		check(err)
		revoked := map[*mpi.Comm]bool{
			ranged(w, "local"): false, ranged(w, "group"): true, ranged(w, "universe"): true,
			ranged(left, "group"): false, ranged(left, "universe"): true,
		}
		later, err := w.Dup()
		check(err)
		meets(w)
		if w.Rank() == 1 {
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		if _, err := mpi.Recv(w, make([]int64, 1), 1, 3); !errors.Is(err, mpi.ErrProcFailed) {
			panic(fmt.Sprint("not the loss of a proc: ", err))
		}
		revoked[later] = true
		info := mpi.NewInfo()
		check(info.Set("mpi_error_range", "group"))
		check(later.SetInfo(info))
		check(info.Set("mpi_error_range", "universe"))
		check(w.SetInfo(info)) // no proc is lost from now on
		revoked[w] = false
		for c, want := range revoked {
			_, err := mpi.Sendrecv(c, []int64{1}, c.Rank(), 4, make([]int64, 1), c.Rank(), 4)
			is, wrong := c.IsRevoked()
			check(wrong)
			if errors.Is(err, mpi.ErrRevoked) != want || err != nil && !want || is != want {
				panic(fmt.Sprintf("a communicator of %d: %v, revoked %v, want %v", c.Size(), err, is, want))
			}
		}
		fmt.Println("as the ranges say")
		finalize()
	}
}

func surviving(mode string, procs ...int) *config.Job {
	job := testJob(mode, procs...)
	job.Survive = true
	return job
}

// TestSurvivesProc: a proc that dies is an error to those who need it, and the job goes on.
func TestSurvivesProc(t *testing.T) {
	for op := range lossOps {
		for _, sites := range [][]int{{4}, {2, 2}, {1, 1, 1}} {
			t.Run(fmt.Sprint(op, sites), func(t *testing.T) {
				all := start(t, surviving("loses "+op, sites...))
				f := end(all)
				went := 0
				for i, r := range all {
					if f[i] == nil || !strings.HasSuffix(f[i].Text, "was killed by SIGKILL; the job went on without it") {
						t.Errorf("site %d ended with %v", i, f[i])
					}
					went += strings.Count(r.out.String(), "goes on: MPIX_ERR_PROC_FAILED")
				}
				n := 0
				for _, k := range sites {
					n += k
				}
				if went != n-1 {
					t.Errorf("%d procs have gone on, of %d", went, n-1)
				}
			})
		}
	}
}

// TestSurvivesInRanges: the info key mpi_error_range.
func TestSurvivesInRanges(t *testing.T) {
	all := start(t, surviving("loses in ranges", 2, 2))
	end(all)
	if n := strings.Count(all[0].out.String()+all[1].out.String(), "as the ranges say"); n != 3 {
		t.Errorf("%d procs, not 3:\n%s%s", n, all[0].err.String(), all[1].err.String())
	}
}

// TestSurvivesNothingElse: without the option, and by an abort, the job ends as always.
func TestSurvivesNothingElse(t *testing.T) {
	wantAll(t, start(t, testJob("loses recv", 2, 1)), "rank 1 on site alpha was killed by SIGKILL")
	aborts := start(t, surviving("abort", 2, 1))
	f := wantAll(t, aborts, "rank 2 on site beta called MPI Abort with code 7: the matrix is singular")
	if f[1].Status != 7 || f[0].Status != ending.StatusRemote {
		t.Errorf("alpha: %+v, beta: %+v", f[0], f[1])
	}
	for _, r := range aborts {
		if s := r.err.String(); strings.Contains(s, "goes on without") {
			t.Errorf("a job that is aborted goes on:\n%s", s)
		}
	}
}

// TestStatusOfTheLost: at each site a proc that is lost is called so, with when and why; and those
// that are left and wait for each other are a deadlock, in agreements and in Finalize, too.
func TestStatusOfTheLost(t *testing.T) {
	began := time.Now()
	all := start(t, surviving("leaves others", 2, 2))
	for _, r := range all {
		<-r.n.ready
		var last status.Job
		if !awaitStatus(t, r.n.dir.Path, func(j *status.Job) bool { last = *j; return j.Deadlock != nil }) {
			t.Fatalf("no deadlock of\n%s", doing(&last))
		}
		does := doing(&last)
		for _, want := range []string{"in mpi.Comm.Shrink (rank 2 in MPI_COMM_WORLD) at ", "in mpi.Finalize (rank 0 in MPI_COMM_WORLD) at "} {
			if !strings.Contains(does, want) {
				t.Errorf("no %q in\n%s", want, does)
			}
		}
		if c := last.Deadlock.Cycle; !slices.Equal(c, []int{0, 2}) {
			t.Errorf("the cycle is %v", c)
		}
		const why = "rank 1 on site alpha was killed by SIGKILL"
		x := last.Sites[0].Ranks[1]
		state, what := status.Describe(&x)
		if state != "lost" || !strings.HasPrefix(what, "lost since ") || !strings.HasSuffix(what, " ago: "+why) || x.Lost.At.Before(began) || x.Lost.At.After(time.Now()) {
			t.Errorf("rank 1: %s, %s, %+v", state, what, x.Lost)
		}
	}
}

// TestStatusOfALostSite: a site that is lost is neither asked nor called silent.
func TestStatusOfALostSite(t *testing.T) {
	job := &links.Node{}
	lost := &survival{n: &node{}, on: true}
	world := &startup.Job{}
	for i := range 2 {
		world.Clients = append(world.Clients, startup.ClientInfo{FirstHost: wire.HostRank(i), NHosts: 1, FirstProc: wire.WorldRank(2 * i), NProcs: 2})
		world.Hosts = append(world.Hosts, startup.HostInfo{Client: wire.ClientRank(i), FirstProc: wire.WorldRank(2 * i), NProcs: 2})
		for j := range 2 {
			world.Procs.Add(startup.ProcInfo{ID: wire.Proc{PID: int64(2*i + j)}, Client: wire.ClientRank(i), Host: wire.HostRank(i)})
		}
	}
	lost.rules.Begin(ending.SurvivalNode{Job: world, NHosts: 1})
	_ = lost.rules.Lost(time.Unix(5000, 0), wire.Lost{First: 2, Last: 3, Host: true, Text: "its channel ended"}) // nothing is done about it here
	lost.Describe(job)
	if want := []links.Loss{{First: 2, Last: 3, Host: true, At: time.Unix(5000, 0), Why: "its channel ended"}}; !slices.Equal(job.Lost, want) {
		t.Errorf("%+v", job.Lost)
	}
	for first, want := range map[wire.WorldRank]bool{0: false, 1: false, 2: true} {
		if got := lost.Site(&startup.ClientInfo{FirstProc: first, NProcs: 2}); got != want {
			t.Errorf("the site with ranks %d and %d: %v", first, first+1, got)
		}
	}
}

// TestSurvivesEarlyDeath: a proc that dies while others are still being welcomed is lost like any
// other.
func TestSurvivesEarlyDeath(t *testing.T) {
	for range 5 {
		all := start(t, surviving("first", 6, 2))
		for i, f := range end(all) {
			if f == nil || f.Text != "rank 0 on site alpha exited with status 3; the job went on without it" {
				t.Errorf("site %d ended with %v", i, f)
			}
		}
	}
}

// TestSurvivesSilence: two sites between which the network goes down are lost to each other, and
// each goes on alone.
func TestSurvivesSilence(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		apart(t)
		return
	}
	switchLoopback(t, unix.IFF_UP)
	job := route(surviving("alone", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true})
	job.Limits.Silence = 2 * time.Second
	all := start(t, job)
	for i, r := range all {
		r.out.Line(t, fmt.Sprintf("[%d] sum ", i))
	}
	switchLoopback(t, 0)
	for i, f := range end(all) {
		if f == nil || !strings.Contains(f.Text, "nothing was heard from ") || !strings.HasSuffix(f.Text, "; the job went on without it") || f.Status != ending.StatusRemote {
			t.Errorf("site %d: %+v", i, f)
		}
		if !strings.Contains(all[i].out.String(), "goes on alone") {
			t.Errorf("site %d does not go on", i)
		}
	}
}
