package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/skips"
)

func init() {
	// The procs of the other sites go on without those of one, the first of which is given.
	for _, first := range []int{0, 2} {
		programs[fmt.Sprint("loses two from ", first)] = func() {
			w := initialize()
			everybody(w)
			check(mpi.Barrier(w))
			fmt.Printf("ready %d pid %d\n", w.Rank(), os.Getpid())
			if w.Rank() == first || w.Rank() == first+1 {
				select {}
			}
			for r := first; r < first+2; r++ {
				if _, err := mpi.Recv(w, make([]int64, 1), r, 3); !errors.Is(err, mpi.ErrProcFailed) {
					panic(fmt.Sprint("not the loss of a proc: ", err))
				}
			}
			left, err := w.Shrink()
			check(err)
			everybody(left)
			sum := make([]int64, 1000)
			check(mpi.Allreduce(left, slices.Repeat([]int64{1}, 1000), sum, mpi.Sum))
			if int(sum[999]) != w.Size()-2 {
				panic(fmt.Sprint("a sum of ", sum[999]))
			}
			fmt.Println("goes on")
			finalize()
		}
	}
}

// nativeSurvivors is a job of a site of Open MPI, one of MPICH and one of ours that goes on without
// lost ones.
func nativeSurvivors(t *testing.T, mode string) *config.Job {
	t.Helper()
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	t.Setenv("OMPI_MCA_btl_vader_backing_directory", t.TempDir()) // which it does not remove when its launcher is killed
	for _, tool := range []string{"mpicc.openmpi", "mpirun.openmpi", "mpicc.mpich", "mpirun.mpich"} {
		if _, err := exec.LookPath(tool); err != nil {
			skips.NotRun(t, "there is no "+tool, "apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich")
		}
	}
	job := testJob(mode, 2, 2, 1)
	job.Sites[0].Native = &config.Native{MPICC: "mpicc.openmpi", Launch: []string{"mpirun", "--oversubscribe", "-n", "{procs}"}}
	job.Sites[1].Native = &config.Native{MPICC: "mpicc.mpich"}
	job.Survive = true
	return job
}

// TestNativeSiteIsLost: with a proc of a native site that is killed, or its launcher, all of the
// site is lost, as that MPI ends all of its procs. The other sites go on, also those that have an
// MPI of their own.
func TestNativeSiteIsLost(t *testing.T) {
	for site, name := range []string{"alpha", "beta"} {
		for what, of := range map[string]func(*running) int{
			"a proc":       func(m *running) int { return m.out.Number(t, fmt.Sprintf("[%s] ready %d pid ", name, 2*site+1)) },
			"its launcher": func(m *running) int { return m.n.native.PID() },
		} {
			t.Run(name+" by "+what, func(t *testing.T) {
				all := start(t, nativeSurvivors(t, fmt.Sprint("loses two from ", 2*site)))
				for i, m := range all {
					if !m.out.Await("ready ", []int{2, 2, 1}[i]) {
						t.Fatal("a site has ended early")
					}
				}
				if err := unix.Kill(of(all[site]), unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				failures := end(all)
				for i, m := range all {
					went, f := strings.Count(m.out.String(), "goes on\n"), failures[i]
					switch {
					case f == nil:
						t.Errorf("site %d: no failure", i)
					case i == site && (went > 0 || f.Status == 0 || !strings.HasPrefix(f.Text, "the others go on without site "+name+": ")):
						t.Errorf("the lost site: %d have gone on, %+v", went, f)
					case i != site && (went != len(m.n.procs.All()) || !strings.HasSuffix(f.Text, "; the job went on without it")):
						t.Errorf("site %d: %d have gone on, %+v", i, went, f)
					}
				}
			})
		}
	}
}

// TestNativeAbortEndsAll: MPI_Abort at a native site ends the job, also one that may go on without
// lost sites.
func TestNativeAbortEndsAll(t *testing.T) {
	job := nativeSurvivors(t, "native aborts")
	for i, f := range end(start(t, job)) {
		if f == nil || f.Lost > 0 || !strings.Contains(f.Text, "rank 1 on site alpha called MPI Abort with code 9") {
			t.Errorf("site %d: %+v", i, f)
		}
	}
}

func init() {
	programs["native aborts"] = func() {
		w := initialize()
		everybody(w)
		if w.Rank() == 1 {
			mpi.Abort(9, "as the test wants")
		}
		select {}
	}
}
