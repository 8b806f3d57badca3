package node

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
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

// TestSurvivesNothingElse: without the option, and by an abort, the job ends as always.
func TestSurvivesNothingElse(t *testing.T) {
	wantAll(t, start(t, testJob("loses recv", 2, 1)), "rank 1 on site alpha was killed by SIGKILL")
	f := wantAll(t, start(t, surviving("abort", 2, 1)), "rank 2 on site beta called MPI Abort with code 7: the matrix is singular")
	if f[1].Status != 7 || f[0].Status != ending.StatusRemote {
		t.Errorf("alpha: %+v, beta: %+v", f[0], f[1])
	}
}

// TestSurvivesEarlyDeath: a proc that dies while others are still being welcomed is lost like any other.
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

// TestSurvivesSilence: two sites between which the network goes down are lost to each other, and each goes on
// alone.
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
