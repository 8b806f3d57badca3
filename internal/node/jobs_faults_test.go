package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/transcript"
)

// heatJob is a job that shares names with others.
func heatJob(shared func(*config.Job), mode string, procs int, pairs ...string) *config.Job {
	j := with(testJob(mode, procs), append(pairs, serviceVariable, "heat")...)
	shared(j)
	return j
}

// TestJobEndsWhileConnected: the survivors get an error of one class, as often as they
// ask, can still compute, and nothing is left.
func TestJobEndsWhileConnected(t *testing.T) {
	for _, end := range []string{"finalize", "exit", "abort", "kill", "kill node"} {
		t.Run(end, func(t *testing.T) {
			names, shared := sharedNames(t)
			a := start(t, heatJob(shared, "holds", 2, portVariable, "opens"))
			how := end
			if strings.HasPrefix(end, "kill") {
				how = "hang"
			}
			b := heatJob(shared, "holds", 2, "MEET_END", how)
			var fds []int
			if end == "kill node" {
				cmd, out := nodeProcess(t, b)
				for _, prefix := range []string{"[0] pid ", "[1] pid ", "plugin unix "} {
					fds = append(fds, launchtest.Pidfd(t, out.Number(t, prefix)))
				}
				out.Line(t, "[0] met")
				out.Line(t, "[1] met")
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // it was killed
			} else {
				r := start(t, b)
				for i := range 2 { // before they meet, as some end right behind that
					fds = append(fds, launchtest.Pidfd(t, r[0].out.Number(t, fmt.Sprintf("[%d] pid ", i))))
				}
				r[0].out.Line(t, "[1] met")
				r[0].out.Line(t, "[0] met")
				if end == "kill" {
					for i := range 2 {
						if err := unix.Kill(r[0].out.Number(t, fmt.Sprintf("[%d] pid ", i)), unix.SIGKILL); err != nil {
							t.Fatal(err)
						}
					}
				}
				<-r[0].done
				if (r[0].failure == nil) != (end == "finalize") {
					t.Errorf("the job that ended: %v", r[0].failure)
				}
				procsGone(t, r...)
			}
			wantNone(t, a)
			for i := range 2 {
				var classes []string
				for line := range strings.Lines(a[0].out.String()) {
					if c, ok := strings.CutPrefix(line, fmt.Sprintf("[%d] class ", i)); ok {
						classes = append(classes, strings.TrimSuffix(c, "\n"))
					}
				}
				if got := strings.Join(classes, " "); got != "MPI_ERR_PROC_ABORTED MPI_ERR_PROC_ABORTED MPI_ERR_PORT" {
					t.Errorf("rank %d got %s", i, got)
				}
			}
			for _, fd := range fds {
				launchtest.AwaitEnd(t, fd)
			}
			if ports, requests, pairs := a[0].n.meetings.Counts(); ports+requests+pairs > 0 {
				t.Errorf("the node has %d ports, %d requests, %d pairs", ports, requests, pairs)
			}
			procsGone(t, a...)
			if n := names.Len(); n > 0 {
				t.Errorf("%d names are left", n)
			}
		})
	}
}

// nodeProcess starts a job's only site as a process of its own.
func nodeProcess(t *testing.T, job *config.Job) (*exec.Cmd, *transcript.Writer) {
	t.Helper()
	b, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &transcript.Writer{}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=node", "IMPI_TEST_BASE="+launchtest.ShortDir(t))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(b)), out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out.Close()
		if t.Failed() {
			t.Log(out)
		}
	})
	return cmd, out
}

// waiting starts a job whose one proc opens a port and waits for a word before it
// accepts.
func waiting(t *testing.T, shared func(*config.Job), pairs ...string) (r *running, accept func()) {
	t.Helper()
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	r = start(t, heatJob(shared, "latecomer", 1, pairs...), func(o *Options) { o.Stdin = theirs })[0]
	return r, func() {
		if _, err := ours.WriteString("\n"); err != nil {
			t.Error(err)
		}
	}
}

// TestHundredConnectAtOnce: as many as the port's backlog wait, the others are refused
// at once.
func TestHundredConnectAtOnce(t *testing.T) {
	_, shared := sharedNames(t)
	a, accept := waiting(t, shared, timesVariable, "100")
	b := start(t, heatJob(shared, "many-connects", 1, timesVariable, "103"))[0]
	for i := range 3 {
		if !b.out.Await("[0] refused MPI_ERR_PORT\n", i+1) {
			t.Fatalf("only %d were refused:\n%s", i, b.out)
		}
	}
	accept()
	wantNone(t, []*running{a, b})
	if n := strings.Count(b.out.String(), "[0] met\n"); n != 100 {
		t.Errorf("%d have met:\n%s", n, b.out)
	}
}

// TestAcceptingSideGoes while callers wait: closes its port, or is killed.
func TestAcceptingSideGoes(t *testing.T) {
	for _, end := range []string{"closes", "killed"} {
		t.Run(end, func(t *testing.T) {
			_, shared := sharedNames(t)
			a, accept := waiting(t, shared, "MEET_END", end)
			b := start(t, heatJob(shared, "many-connects", 1, timesVariable, "103"))[0]
			for i := range 3 {
				b.out.Await("[0] refused MPI_ERR_PORT\n", i+1)
			}
			if end == "closes" {
				accept()
			} else if err := unix.Kill(a.out.Number(t, "[0] pid "), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			wantNone(t, []*running{b})
			b.out.Line(t, "[0] done")
			if n := strings.Count(b.out.String(), "[0] refused MPI_ERR_P"); n != 103 { // PORT or PROC_ABORTED
				t.Errorf("%d were refused:\n%s", n, b.out)
			}
			<-a.done
			procsGone(t, a, b)
		})
	}
}

// TestCallerKilledInTheQueue: the next one is served.
func TestCallerKilledInTheQueue(t *testing.T) {
	_, shared := sharedNames(t)
	a, accept := waiting(t, shared)
	first := start(t, heatJob(shared, "connects", 1))[0]
	first.err.Await("link of another world: ", 1)
	if err := unix.Kill(first.out.Number(t, "[0] pid "), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.done
	second := start(t, heatJob(shared, "connects", 1))[0]
	second.err.Await("link of another world: ", 1)
	accept()
	wantNone(t, []*running{a, second})
	procsGone(t, first, second, a)
}

// TestRootKilledBetweenTheSteps: one side is in the middle, as a member of it does not
// take part, when its root is killed. The other side's root gets an error; or the next
// caller, if the one that was killed has not said who it is.
func TestRootKilledBetweenTheSteps(t *testing.T) {
	for _, accepting := range []bool{true, false} {
		t.Run(fmt.Sprint("accepting ", accepting), func(t *testing.T) {
			_, shared := sharedNames(t)
			dies, survives := "opens", ""
			if !accepting {
				dies, survives = survives, dies
			}
			victim := start(t, heatJob(shared, "stuck", 2, portVariable, dies))[0]
			other := start(t, heatJob(shared, "stuck", 1, portVariable, survives))[0]
			victim.err.Await("link of another world: ", 1)
			other.err.Await("link of another world: ", 1)
			if err := unix.Kill(victim.out.Number(t, "[0] pid "), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			all := []*running{other}
			if !accepting { // who is not known yet is left for the next one
				all = append(all, start(t, heatJob(shared, "stuck", 1))...)
			}
			end := other.out.Line(t, "[0] ended ")
			if end != "MPI_ERR_PROC_ABORTED" && (accepting || end != "MPI_SUCCESS") {
				t.Errorf("it ended with %s", end)
			}
			for _, r := range all {
				r.cancel(context.Canceled)
				<-r.done
			}
			<-victim.done
			procsGone(t, append(all, victim)...)
		})
	}
}
