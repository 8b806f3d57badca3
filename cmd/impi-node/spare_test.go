package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/transcript"
)

// spawnOn has the procs of a communicator spawn so many at a site, with more hints.
func spawnOn(c *mpi.Comm, site string, procs int, hints ...string) (*mpi.Comm, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	info := mpi.NewInfo()
	for i, h := range append([]string{"host", site}, hints...) {
		if i%2 > 0 {
			continue
		}
		if err := info.Set(h, append([]string{"host", site}, hints...)[i+1]); err != nil {
			return nil, err
		}
	}
	inter, _, err := c.Spawn(mpi.Command{Path: self, Procs: procs, Info: info}, 0)
	return inter, err
}

// together has parents and children make a communicator and sum up what they are.
func together(inter *mpi.Comm, child bool) {
	team, err := inter.Merge(child)
	all := make([]int64, 1)
	if err == nil {
		err = mpi.Allreduce(team, []int64{1}, all, mpi.Sum)
	}
	if err = errors.Join(err, inter.Disconnect()); err != nil {
		panic(err)
	}
	if team.Rank() == 0 {
		fmt.Println("together", all[0])
	}
	if err := team.Disconnect(); err != nil {
		panic(err)
	}
}

// onSpare is a program of jobs with the spare site delta.
func onSpare(what string) {
	w := mpi.World()
	if parent := mpi.Parent(); parent != nil {
		fmt.Println("child at", os.Getenv("IMPI_SITE"))
		if what == "is held" {
			os.Stdout.WriteString("held\n")
			hang()
		}
		together(parent, true)
		return
	}
	var inter *mpi.Comm
	var err error
	switch what {
	case "waits": // for the end, with delta in vain
		if w.Rank() == 0 {
			os.Stdout.WriteString("ready\n")
			hang()
		}
		err = mpi.Barrier(w)
	case "is absent":
		for _, seconds := range []string{"0.5", "none"} {
			inter, err = spawnOn(w, "delta", 1, "timeout", seconds)
			fmt.Println("class", mpi.ErrorClass(err) == mpi.ErrorClass(mpi.ErrSpawn), err)
		}
		return
	case "twice":
		for range 2 { // of one proc they are one after the other, of two at the same time
			if inter, err = spawnOn(mpi.Self(), "delta", 1); err != nil {
				panic(err)
			}
			together(inter, false)
		}
		return
	case "replaces":
		if w.Rank() == 1 {
			os.Stdout.WriteString("ready\n")
			hang()
			if err := syscall.Kill(os.Getppid(), syscall.SIGKILL); err != nil {
				panic(err)
			}
			hang()
		}
		if _, err := mpi.Recv(w, make([]int64, 1), 1, 0); !errors.Is(err, mpi.ErrProcFailed) {
			panic(fmt.Sprint("not the loss of a proc: ", err))
		}
		left, err := w.Shrink()
		if err != nil {
			panic(err)
		}
		if inter, err = spawnOn(left, "delta", 2); err != nil {
			panic(err)
		}
	default:
		os.Stdout.WriteString("ready\n")
		inter, err = spawnOn(w, "delta", 2)
	}
	if err != nil {
		panic(err)
	}
	if what == "is held" {
		hang()
	}
	if inter != nil {
		together(inter, false)
	}
}

// withSpare is a job of two sites and a spare one, which are each started by an impi-node of its
// own.
const withSpare = `
job {
  embedded_server { listen = "SERVER" }
  auth "key" { env = "KEY" }
}
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 1 }
}
site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
}
site "delta" {
  spare = true
  host { address = "127.0.0.4"  procs = 2 }
}
program { command = ["PROGRAM"] }
spawn { allow = ["PROGRAM"] }
`

// siteNode is an impi-node of one site.
type siteNode struct {
	cmd           *exec.Cmd
	out, err, all transcript.Writer // all has both
	done          chan struct{}
}

// spareJob is a job whose sites are started one by one.
type spareJob struct {
	t             *testing.T
	program, file string
	base          string
	nodes         map[string]*siteNode
}

func newSpareJob(t *testing.T, program, text string) *spareJob {
	t.Helper()
	server, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/tmp", "impi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	t.Setenv("KEY", "4711")
	return &spareJob{t: t, program: program, file: file(t, strings.ReplaceAll(text, "SERVER", server.String())), base: base, nodes: map[string]*siteNode{}}
}

// start starts the node of a site, or of a host of it.
func (j *spareJob) start(site string, args ...string) *siteNode {
	j.t.Helper()
	n := &siteNode{done: make(chan struct{})}
	n.cmd, _, _ = command(j.t, j.program, append([]string{"-config", j.file, "-site", site}, args...)...)
	n.cmd.Env = append(n.cmd.Env, "XDG_RUNTIME_DIR="+j.base)
	n.cmd.Stdout, n.cmd.Stderr = io.MultiWriter(&n.out, &n.all), io.MultiWriter(&n.err, &n.all)
	if err := n.cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	go func() {
		_ = n.cmd.Wait() // the status says it
		n.all.Close()
		close(n.done)
	}()
	j.nodes[strings.Join(append([]string{site}, args...), " ")] = n
	j.t.Cleanup(func() {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		<-n.done
		if j.t.Failed() {
			j.t.Logf("%s: status %d\n%s%s", site, n.cmd.ProcessState.ExitCode(), &n.out, &n.err)
		}
	})
	return n
}

// says waits until a node has written something.
func (n *siteNode) says(t *testing.T, what string) {
	t.Helper()
	if !n.all.Await(what, 1) {
		t.Fatalf("no %q in\n%s%s", what, &n.out, &n.err)
	}
}

// ends waits for the end of a node, and wants a status and a text in what it has written.
func (n *siteNode) ends(t *testing.T, status int, what string) {
	t.Helper()
	<-n.done
	if s := n.cmd.ProcessState.ExitCode(); s != status || !strings.Contains(n.out.String()+n.err.String(), what) {
		t.Errorf("status %d, want %d and %q:\n%s%s", s, status, what, &n.out, &n.err)
	}
}

// lose has the proc of a site kill its node, once that is in MPI and another site knows the spare
// one.
func (j *spareJob) lose(doomed, other *siteNode) {
	j.t.Helper()
	doomed.says(j.t, "ready")
	other.says(j.t, "a spare site is there")
	strikeAll(j.t, []int{doomed.cmd.Process.Pid}, syscall.SIGUSR1)
	doomed.ends(j.t, -1, "")
}

const isThere = "this spare site waits for procs that are spawned here"

// TestSpareSiteIsTaken: it comes before the job, or when that runs already; its procs are where
// they should be, and it ends with the job.
func TestSpareSiteIsTaken(t *testing.T) {
	for _, c := range []struct {
		name   string
		text   string
		before bool
	}{
		{"first", withSpare, true},
		{"late", withSpare, false},
		{"by tcp", withSpare + `route "*" { prefer = ["tcp"] }`, false},
		{"survive", strings.Replace(withSpare, "job {", "job {\n  survive = true", 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newSpareJob(t, "spare takes", c.text)
			if c.before {
				j.start("delta").says(t, "this site is spare")
			}
			alpha, beta := j.start("alpha"), j.start("beta")
			if !c.before {
				alpha.says(t, "ready") // and spawns now
				j.start("delta")
			}
			alpha.ends(t, 0, "together 4")
			beta.ends(t, 0, "")
			j.nodes["delta"].ends(t, 0, "the job is over, and this spare site was taken: site=delta most_procs=2")
			if n := strings.Count(j.nodes["delta"].out.String(), "child at delta"); n != 2 {
				t.Errorf("%d children at delta", n)
			}
		})
	}
}

// TestSpareSiteReplacesALostSite: a job goes on without a site, and spawns procs on the spare one
// in its place.
func TestSpareSiteReplacesALostSite(t *testing.T) {
	j := newSpareJob(t, "spare replaces", strings.Replace(withSpare, "job {", "job {\n  survive = true", 1))
	j.start("delta").says(t, "this site is spare")
	alpha, beta := j.start("alpha"), j.start("beta")
	j.lose(beta, alpha)
	alpha.ends(t, ending.StatusRemote, "together 3")
	j.nodes["delta"].ends(t, 0, "this spare site was taken")
}

// TestSpareSiteWithoutTheServer: that is lost with its site, and the spare site serves the others.
func TestSpareSiteWithoutTheServer(t *testing.T) {
	text := strings.Replace(withSpare, `site "alpha" {
  client = 0`, `site "alpha" {
  client = 1`, 1)
	text = strings.Replace(text, `site "beta" {
  client = 1`, `site "beta" {
  client = 0`, 1)
	text = strings.Replace(text, "job {", "job {\n  survive = true", 1)
	text = strings.Replace(text, `  embedded_server { listen = "SERVER" }`, "", 1)
	text = strings.Replace(text, "  client = 1\n", "  client = 1\n  embedded_server { listen = \"SERVER\" }\n", 1) // rank 1 is lost
	j := newSpareJob(t, "spare replaces", text+"limits {\n start = \"5m\"\n resume = \"3s\"\n silence = \"3s\"\n}\n")
	alpha, beta, delta := j.start("alpha"), j.start("beta"), j.start("delta")
	j.lose(alpha, beta)
	beta.ends(t, ending.StatusRemote, "together 3")
	delta.ends(t, 0, "this spare site was taken")
}

// TestSpareSiteIsNotNeeded: it ends with a job that goes well and with one that fails, and its loss
// is no matter of the job.
func TestSpareSiteIsNotNeeded(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, j *spareJob, delta *siteNode){
		"the job goes well": func(t *testing.T, j *spareJob, delta *siteNode) {
			strikeAll(t, []int{j.nodes["alpha"].cmd.Process.Pid}, syscall.SIGUSR1)
			j.nodes["alpha"].ends(t, 0, "")
			delta.ends(t, 0, "the job is over, and this spare site was not needed")
		},
		"the job fails": func(t *testing.T, j *spareJob, delta *siteNode) {
			strikeAll(t, []int{j.nodes["alpha"].cmd.Process.Pid}, syscall.SIGTERM)
			j.nodes["alpha"].ends(t, 128+int(syscall.SIGTERM), "")
			delta.ends(t, ending.StatusRemote, "the operator ended the job at site alpha")
		},
		"it is killed": func(t *testing.T, j *spareJob, delta *siteNode) {
			strikeAll(t, []int{delta.cmd.Process.Pid}, syscall.SIGKILL)
			j.nodes["alpha"].says(t, "a spare site is lost, which is no matter of the job")
			again := j.start("delta") // and may come back
			again.says(t, isThere)
			strikeAll(t, []int{j.nodes["alpha"].cmd.Process.Pid}, syscall.SIGUSR1)
			j.nodes["alpha"].ends(t, 0, "")
			again.ends(t, 0, "was not needed")
		},
		"its operator ends it": func(t *testing.T, j *spareJob, delta *siteNode) {
			strikeAll(t, []int{delta.cmd.Process.Pid}, syscall.SIGTERM)
			delta.ends(t, 128+int(syscall.SIGTERM), "")
			strikeAll(t, []int{j.nodes["alpha"].cmd.Process.Pid}, syscall.SIGUSR1)
			j.nodes["alpha"].ends(t, 0, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newSpareJob(t, "spare waits", withSpare)
			j.start("alpha")
			beta := j.start("beta")
			j.nodes["alpha"].says(t, "ready")
			delta := j.start("delta")
			delta.says(t, isThere)
			j.nodes["alpha"].says(t, "a spare site is there")
			beta.says(t, "a spare site is there")
			end(t, j, delta)
		})
	}
}

// TestSpareSiteIsAbsent: a spawn that names it fails with its class and a reason, after the time
// that it has said, and the job goes on.
func TestSpareSiteIsAbsent(t *testing.T) {
	j := newSpareJob(t, "spare is absent", withSpare)
	alpha, beta := j.start("alpha"), j.start("beta")
	alpha.ends(t, 0, "spare site delta has not come within 500ms: start impi-node on its machine")
	beta.ends(t, 0, "")
	out := alpha.out.String()
	if strings.Count(out, "class true") != 2 || !strings.Contains(out, `its timeout "none" is no number of seconds`) {
		t.Errorf("%s", out)
	}
}

// TestSpareSiteIsKilledWhenTaken: its procs are lost with it, and the job of their parents fails
// and says so. That of a job that goes on without procs is in TestSecondLoss.
func TestSpareSiteIsKilledWhenTaken(t *testing.T) {
	j := newSpareJob(t, "spare is held", withSpare)
	alpha, beta, delta := j.start("alpha"), j.start("beta"), j.start("delta")
	delta.says(t, "held")
	strikeAll(t, []int{delta.cmd.Process.Pid}, syscall.SIGKILL)
	alpha.ends(t, ending.StatusRemote, "alpha.spawn1, which rank 0 on site alpha has spawned, failed")
	beta.ends(t, ending.StatusRemote, "alpha.spawn1")
}

// TestSpareSiteWithAWrongKey: it is not let in, and the job goes on.
func TestSpareSiteWithAWrongKey(t *testing.T) {
	j := newSpareJob(t, "spare waits", withSpare)
	alpha, beta := j.start("alpha"), j.start("beta")
	alpha.says(t, "ready")
	t.Setenv("KEY", "4712")
	j.start("delta").ends(t, ending.StatusNode, "wrong key")
	if strings.Contains(alpha.err.String(), "a spare site is there") {
		t.Error("it was let in")
	}
	strikeAll(t, []int{alpha.cmd.Process.Pid}, syscall.SIGUSR1)
	alpha.ends(t, 0, "")
	beta.ends(t, 0, "")
}

// TestSpareSiteThatNobodyExpects: the server's site says nothing of it in its file.
func TestSpareSiteThatNobodyExpects(t *testing.T) {
	j := newSpareJob(t, "spare waits", withSpare)
	without := *j
	i, end := strings.Index(withSpare, `site "delta"`), strings.Index(withSpare, "program {")
	server := strings.TrimSpace(j.server())
	without.file = file(t, strings.ReplaceAll(withSpare[:i]+withSpare[end:], "SERVER", server))
	alpha, beta := without.start("alpha"), without.start("beta")
	alpha.says(t, "ready")
	j.start("delta").ends(t, ending.StatusRemote, "job takes no more clients")
	strikeAll(t, []int{alpha.cmd.Process.Pid}, syscall.SIGUSR1)
	alpha.ends(t, 0, "")
	beta.ends(t, 0, "")
}

// server is where the job's server listens.
func (j *spareJob) server() string {
	text, err := os.ReadFile(j.file)
	if err != nil {
		j.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `listen = "`)
	at, _, _ := strings.Cut(rest, `"`)
	return at
}

// TestSpareSiteOfTwoSpawns: procs of both sites spawn there, at the same time and one after the
// other.
func TestSpareSiteOfTwoSpawns(t *testing.T) {
	j := newSpareJob(t, "spare twice", withSpare)
	alpha, beta, delta := j.start("alpha"), j.start("beta"), j.start("delta")
	for _, n := range []*siteNode{alpha, beta} {
		n.ends(t, 0, "together 2")
		if strings.Count(n.out.String(), "together 2") != 2 {
			t.Errorf("%s", &n.out)
		}
	}
	delta.ends(t, 0, "this spare site was taken")
	if n := strings.Count(delta.out.String(), "child at delta"); n != 4 {
		t.Errorf("%d children", n)
	}
}

// TestSpareSiteOfTwoMachines: each has a node of its own, and each gets a share of the procs.
func TestSpareSiteOfTwoMachines(t *testing.T) {
	text := strings.Replace(withSpare, `  host { address = "127.0.0.4"  procs = 2 }`, `  host { address = "127.0.0.4"  procs = 1 }
  host { address = "127.0.0.5"  procs = 1 }
  head = "`+loopback.Unused(t)+`"`, 1)
	j := newSpareJob(t, "spare takes", text)
	head, other := j.start("delta", "-host", "127.0.0.4"), j.start("delta", "-host", "127.0.0.5")
	alpha, beta := j.start("alpha"), j.start("beta")
	alpha.ends(t, 0, "together 4")
	beta.ends(t, 0, "")
	head.ends(t, 0, "this spare site was taken")
	other.ends(t, 0, "")
	if n := strings.Count(head.out.String(), "child at delta"); n != 2 { // the head has all output
		t.Errorf("%d children", n)
	}
}

// TestSparesOfOneCommand: a launcher starts them with the other sites, and their loss is not its
// own.
func TestSparesOfOneCommand(t *testing.T) {
	text := strings.Replace(strings.Replace(withSpare, ` { listen = "SERVER" }`, " {}", 1), `  auth "key" { env = "KEY" }`, "", 1) + `
site "eps" {
  spare = true
  host { address = "127.0.0.5"  procs = 2 }
}`
	status, out, err := impiNode(t, "spare takes", "-config", file(t, text))
	if status != 0 || !strings.Contains(out, "together 4") || strings.Count(out, "child at delta") != 2 ||
		!strings.Contains(err, "this spare site was not needed: site=eps") || !strings.Contains(err, "this spare site was taken: site=delta") {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
}

// TestSparesAreShown: by links and status, and by validate.
func TestSparesAreShown(t *testing.T) {
	text := withSpare + `
site "eps" {
  spare = true
  host { address = "127.0.0.5"  procs = 2 }
}`
	j := newSpareJob(t, "spare is held", text)
	alpha := j.start("alpha")
	j.start("beta")
	delta := j.start("delta")
	delta.says(t, "held")
	show := func(command string) string {
		_, out, errs := impiNode(t, "", command, "-run-dir", j.base, "-deadline", "60s")
		return out + errs
	}
	for _, command := range []string{"links", "status"} {
		for late := time.Now().Add(time.Minute); ; {
			out := show(command)
			if strings.Contains(out, "spare site delta  taken: 2 procs were spawned there") && strings.Contains(out, "spare site eps  has not come") {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%s:\n%s", command, out)
			}
		}
	}
	strikeAll(t, []int{delta.cmd.Process.Pid}, syscall.SIGKILL)
	<-alpha.done
	status, out, err := impiNode(t, "", "validate", j.file)
	if status != 0 || !strings.Contains(out, "2 sites and 2 spare sites, 2 procs, no faults") {
		t.Errorf("validate: status %d, %s%s", status, out, err)
	}
}
