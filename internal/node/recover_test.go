package node

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/mpi"
)

// endSelf ends this proc as a crash does.
func endSelf() {
	check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	hang()
}

// sums adds up the ranks of the world in c until that fails, or n times.
func sums(c *mpi.Comm, rank int64, n int) (sum int64, err error) {
	for range n {
		all := make([]int64, 1)
		if err := mpi.Allreduce(c, []int64{rank}, all, mpi.Sum); err != nil {
			return 0, err
		}
		sum = all[0]
	}
	return sum, nil
}

// rescue revokes a communicator and makes one of those that are left.
func rescue(c *mpi.Comm, err error) *mpi.Comm {
	if !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrRevoked) {
		panic(fmt.Sprint("neither a loss nor its consequence: ", err))
	}
	check(c.Revoke())
	d, err := c.Shrink()
	check(err)
	return d
}

// recovers are programs that lose procs, and what those that are left print.
var recovers = map[string]func(w *mpi.Comm) string{
	// rank 1 dies while the others compute; they go on without it
	"solver": func(w *mpi.Comm) string {
		c, err := w.Dup()
		check(err)
		if w.Rank() == 1 {
			_, err = sums(c, int64(w.Rank()), 20)
			check(err)
			endSelf()
		}
		_, err = sums(c, int64(w.Rank()), 1<<30)
		d := rescue(c, err)
		if revoked, err := c.IsRevoked(); !revoked || err != nil {
			panic(fmt.Sprint(revoked, err))
		}
		if _, err := mpi.Recv(c, make([]int64, 1), 0, 0); mpi.ErrorClass(err).String() != "MPIX_ERR_REVOKED" {
			panic(fmt.Sprint("in a revoked communicator: ", err))
		}
		check(c.Free())
		sum, err := sums(d, int64(w.Rank()), 100)
		check(err)
		return fmt.Sprint(d.Size(), " left, sum ", sum)
	},
	// only rank 0 hears of the loss in a call; the others wait for ranks that live
	"revoke": func(w *mpi.Comm) string {
		meets(w)
		switch w.Rank() {
		case 1:
			endSelf()
		case 0:
			_, err := mpi.Recv(w, make([]int64, 1), 1, 9)
			if !errors.Is(err, mpi.ErrProcFailed) {
				panic(err)
			}
			check(w.Revoke())
		default:
			_, err := mpi.Recv(w, make([]int64, 1), 0, 9) // which never sends it
			if !errors.Is(err, mpi.ErrRevoked) {
				panic(err)
			}
		}
		d, err := w.Shrink()
		check(err)
		return fmt.Sprint(d.Size(), " left, rank ", d.Rank())
	},
	// rank 2 dies in the shrink that was to help after the death of rank 1
	"shrink": func(w *mpi.Comm) string {
		meets(w)
		if w.Rank() == 1 {
			endSelf()
		}
		_, err := mpi.Recv(w, make([]int64, 1), 1, 9)
		if w.Rank() == 2 {
			_, _, err := w.Ishrink()
			check(err)
			endSelf()
		}
		d := rescue(w, err)
		for {
			sum, err := sums(d, int64(w.Rank()), 1<<10)
			if err == nil && d.Size() == w.Size()-2 {
				return fmt.Sprint(d.Size(), " left, sum ", sum)
			}
			if err == nil {
				err = mpi.ErrProcFailed // it has died, and is not needed yet
			}
			d = rescue(d, err)
		}
	},
	// agreements before and after a loss, acknowledged and not
	"agree": func(w *mpi.Comm) string {
		flags := ^(int32(1) << w.Rank())
		all, err := w.Agree(flags)
		if check(err); all != ^(int32(1)<<w.Size() - 1) {
			panic(fmt.Sprintf("%x", all))
		}
		if w.Rank() == 1 {
			endSelf()
		}
		_, _ = mpi.Recv(w, make([]int64, 1), 1, 9)
		all, err = w.Agree(flags)
		if !errors.Is(err, mpi.ErrProcFailed) || all != ^(int32(1)<<w.Size()-1)|2 {
			panic(fmt.Sprintf("%x %v", all, err))
		}
		failed, err := w.GetFailed()
		check(err)
		none, err := w.FailureGetAcked()
		check(err)
		if w.Rank() == 0 {
			n, err := w.AckFailed(5)
			if check(err); n != 1 {
				panic(n)
			}
		} else {
			check(w.FailureAck())
		}
		acked, err := w.FailureGetAcked()
		check(err)
		q, err := w.Iagree(&flags)
		check(err)
		_, err = q.Wait()
		check(err)
		if none.Size() != 0 || acked.Size() != 1 || failed.Size() != 1 {
			panic("not the group of rank 1")
		}
		// A receive from any source waits for those that are left now.
		check(mpi.Send(w, []int64{7}, w.Rank(), 3))
		in := make([]int64, 1)
		if _, err := mpi.Recv(w, in, mpi.AnySource, 3); err != nil || in[0] != 7 {
			panic(fmt.Sprint(in, err))
		}
		return fmt.Sprint("flags ", flags&0xff)
	},
}

func init() {
	for name, run := range recovers {
		programs["recovers "+name] = func() {
			w := initialize()
			fmt.Println("result:", run(w))
			finalize()
		}
	}
}

// TestRecovers: those that are left revoke, shrink, agree and go on, and get right results.
func TestRecovers(t *testing.T) {
	for name, want := range map[string]string{
		"solver": "result: 3 left, sum 5", "revoke": "result: 3 left, rank ", "shrink": "result: 2 left, sum 3", "agree": "result: flags 242",
	} {
		for _, sites := range [][]int{{4}, {2, 2}, {1, 2, 1}} {
			t.Run(fmt.Sprint(name, sites), func(t *testing.T) {
				all := start(t, surviving("recovers "+name, sites...))
				got := 0
				for i, f := range end(all) {
					if f == nil || !strings.Contains(f.Text, "; the job went on without ") {
						t.Errorf("site %d ended with %v", i, f)
					}
					got += strings.Count(all[i].out.String(), want)
				}
				wantGot := 3
				if name == "shrink" {
					wantGot = 2
				}
				if got != wantGot {
					t.Errorf("%d procs have said %q", got, want)
				}
			})
		}
	}
}
