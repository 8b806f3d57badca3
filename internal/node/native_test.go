package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/wireup"
)

// What a fake launcher tells the procs that it starts, as an MPI's own tells them.
const (
	fakeRank = "IMPI_TEST_FAKE_RANK"
	fakeSize = "IMPI_TEST_FAKE_SIZE"
)

// fakeLauncher is a launcher with the arguments -n and a number, and a command. The mode says what
// it does wrong.
func fakeLauncher() int {
	mode := os.Getenv(modeVariable)
	n, err := strconv.Atoi(os.Args[2])
	check(err)
	switch mode {
	case "few":
		n--
	case "proxied": // another process of its own starts the procs, whose end it does not mind
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), roleVariable+"=launcher", modeVariable+"=well")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		check(cmd.Start())
		fmt.Println("proxy", cmd.Process.Pid)
		_ = cmd.Wait()
		select {}
	case "tied":
		runtime.LockOSThread() // by whose end the procs are killed
	case "refuses":
		fmt.Fprintf(os.Stderr, "---------\nThere are not enough slots\n   for %d procs.\n---------\n", n)
		return 1
	}
	type ended struct {
		rank   int
		status int
	}
	ends := make(chan ended, n)
	var all []*exec.Cmd
	for rank := range n {
		cmd := exec.Command(os.Args[3], os.Args[4:]...)
		if mode == "twice" {
			rank = 0
		}
		cmd.Env = append(os.Environ(), fmt.Sprint(fakeRank, "=", rank), fmt.Sprint(fakeSize, "=", n))
		cmd.Stdout, cmd.Stderr, cmd.Stdin = os.Stdout, os.Stderr, os.Stdin
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as launchers do: they are not in its group
		if mode == "tied" {
			cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		}
		check(cmd.Start())
		all = append(all, cmd)
		go func() {
			_ = cmd.Wait()
			status := cmd.ProcessState.ExitCode()
			if status < 0 {
				status = 128 + int(cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
			}
			ends <- ended{rank, status}
		}()
	}
	worst := 0
	for range n {
		if e := <-ends; e.status != 0 && worst == 0 {
			worst = e.status
			fmt.Fprintf(os.Stderr, "rank %d ended with %d\n", e.rank, e.status)
			for _, cmd := range all {
				if mode != "lenient" {
					_ = cmd.Process.Kill()
				}
			}
		}
	}
	if mode == "hangs" {
		select {}
	}
	return worst
}

// fakeProc goes through Init as a proc of a native site does.
func fakeProc() (rank int, c *wireup.Conn) {
	environment, found, err := native.ReadEnvironment(os.Getenv)
	check(err)
	if !found {
		panic("IMPI_NATIVE is not set")
	}
	rank, err = strconv.Atoi(os.Getenv(fakeRank))
	check(err)
	size, err := strconv.Atoi(os.Getenv(fakeSize))
	check(err)
	c, _, err = wireup.Attach(environment.Socket)
	check(err)
	check(c.Send(wireup.Message{Kind: wireup.KindAttach, Version: wireup.Version, Peer: wire.WorldRank(rank), Size: size, Library: "Fake MPI v1.2.3, package: none"}))
	check(c.Send(wireup.Message{Kind: wireup.KindHello, Version: wireup.Version, Library: "fake"}))
	m, _, err := c.Recv()
	check(err)
	if m.Kind == wireup.KindDown {
		os.Exit(m.Code)
	}
	return rank, c
}

func init() {
	programs["fake"] = func() {
		rank, c := fakeProc()
		fmt.Println("rank", rank, "of", os.Getenv("IMPI_SITE"))
		check(c.Send(wireup.Message{Kind: wireup.KindFini}))
	}
	programs["fake 4"] = func() { // which rank 1 ends with, after Finalize
		rank, c := fakeProc()
		check(c.Send(wireup.Message{Kind: wireup.KindFini}))
		if rank == 1 {
			os.Exit(4)
		}
	}
	programs["fake waits"] = func() {
		rank, c := fakeProc()
		fmt.Printf("rank %d pid %d\n", rank, os.Getpid())
		for {
			if m, _, err := c.Recv(); err != nil || m.Kind == wireup.KindDown {
				os.Exit(m.Code)
			}
		}
	}
	programs["fake stays"] = func() { // whatever is said or signalled
		signal.Ignore(syscall.SIGTERM)
		rank, c := fakeProc()
		fmt.Printf("rank %d pid %d\n", rank, os.Getpid())
		for {
			if _, _, err := c.Recv(); err != nil {
				select {}
			}
		}
	}
	programs["never"] = func() { fmt.Println("done") }
	programs["waits elsewhere"] = func() { // never comes, and says so
		signal.Ignore(syscall.SIGTERM)
		fmt.Printf("rank %s pid %d\n", os.Getenv(fakeRank), os.Getpid())
		select {}
	}
	programs["early exit"] = func() { os.Exit(5) }
}

// fakeSite makes a site native, with a fake launcher of a mode.
func fakeSite(t *testing.T, job *config.Job, site int, mode string) {
	t.Helper()
	dir := launchtest.ShortDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mpirun")
	script := fmt.Sprintf("#!/bin/sh\n%s=launcher %s='%s' exec %s \"$@\"\n", roleVariable, modeVariable, mode, self)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	job.Sites[site].Native = &config.Native{MPICC: "mpicc", Shim: path, Launch: []string{path, "-n", "{procs}"}}
}

func TestFakeNativeSite(t *testing.T) {
	job := testJob("fake", 4)
	fakeSite(t, job, 0, "well")
	all := start(t, job)
	wantNone(t, all)
	var said []string
	for l := range strings.Lines(all[0].out.String()) {
		said = append(said, strings.TrimSpace(l))
	}
	slices.Sort(said)
	if want := []string{"[alpha] rank 0 of alpha", "[alpha] rank 1 of alpha", "[alpha] rank 2 of alpha", "[alpha] rank 3 of alpha"}; !slices.Equal(said, want) {
		t.Errorf("the procs have said %q", said)
	}
	n := all[0].n
	if n.routes.Native != "Fake MPI 1.2.3" {
		t.Errorf("the MPI is called %q", n.routes.Native)
	}
	if p := n.direct.Path(direct.Pair{Local: 0, Peer: 3}); p != wireup.PathNative {
		t.Errorf("ranks 0 and 3 use %s", p)
	}
}

// TestNativeWithDataPlanes: a better transport without the data planes of the route is not used,
// and the card says so, as it may have them on other hosts.
func TestNativeWithDataPlanes(t *testing.T) {
	job := testJob("fake", 2)
	fakeSite(t, job, 0, "well")
	s := &job.Sites[0]
	s.Transports = append(s.Transports, builtin("shm"))
	s.Routes = []config.Route{{Site: s.Name, Prefer: []string{"tcp", "shm"}, Direct: true, DataPlane: []string{"peer-shm"}, Native: true, NativeAt: 1}}
	all := start(t, job)
	wantNone(t, all)
	if card := string(all[0].n.site.Hosts[0].Card); !strings.Contains(card, " feature=unfit-0") {
		t.Errorf("the card is %s", card)
	}
	if p := all[0].n.direct.Path(direct.Pair{Local: 0, Peer: 1}); p != wireup.PathNative {
		t.Errorf("ranks 0 and 1 use %s", p)
	}
}

// TestNativeStartFails: each way in which a launcher does not do what the file says has its text.
func TestNativeStartFails(t *testing.T) {
	for _, c := range []struct {
		launcher, program string
		says              string // a regular expression
		status            int
	}{
		{"few", "fake", `site alpha: the launcher of its own MPI has started 3 procs, and the file says 4: give it that number in launch, as \{procs\}`, ending.StatusConfig},
		{"twice", "fake", `site alpha: the launcher of its own MPI has started rank 0 twice, as processes \d+ and \d+`, ending.StatusConfig},
		{"refuses", "fake", `site alpha: mpirun exited with status 1 before 4 of 4 procs had called MPI Init; it said: There are not enough slots \| for 4 procs.`, 1},
		{"well", "never", `site alpha: mpirun exited with status 0 before 4 of 4 procs had called MPI Init: was the program compiled by impicc\? It seems to use the site's MPI itself, or none`, 1},
		{"well", "early exit", `site alpha: mpirun exited with status 5 before 4 of 4 procs had called MPI Init; it said: rank \d ended with 5`, 5},
	} {
		t.Run(c.launcher+" "+c.program, func(t *testing.T) {
			job := testJob(c.program, 4)
			fakeSite(t, job, 0, c.launcher)
			f := end(start(t, job))[0]
			if f == nil || !regexp.MustCompile("^"+c.says+"$").MatchString(f.Text) || f.Status != c.status {
				t.Errorf("%+v, want %q with status %d", f, c.says, c.status)
			}
		})
	}
}

func TestNativeLauncherIsNotThere(t *testing.T) {
	job := testJob("fake", 2)
	fakeSite(t, job, 0, "well")
	job.Sites[0].Native.Launch = []string{"impi-there-is-none", "{procs}"}
	f := end(start(t, job))[0]
	if f == nil || !strings.HasPrefix(f.Text, `site alpha: the launcher of its own MPI: exec: "impi-there-is-none": executable file not found in $PATH; load the module`) || f.Status != ending.StatusConfig {
		t.Errorf("%+v", f)
	}
}

// TestNativeStartTakesTooLong: procs that do not come are ended, although their launcher is killed.
func TestNativeStartTakesTooLong(t *testing.T) {
	job := testJob("waits elsewhere", 2)
	fakeSite(t, job, 0, "well")
	job.Limits.Start, job.Limits.Stop = 8*time.Second, 100*time.Millisecond
	all := start(t, job)
	var procs []int
	for rank := range 2 {
		procs = append(procs, launchtest.Pidfd(t, all[0].out.Number(t, fmt.Sprintf("[alpha] rank %d pid ", rank))))
	}
	f := end(all)[0]
	if f == nil || f.Text != "site alpha: 8s passed while waiting for MPI Init of the procs that mpirun starts: 0 of 2 are there" || f.Status != ending.StatusTimeout {
		t.Errorf("%+v", f)
	}
	for _, fd := range procs {
		launchtest.AwaitEnd(t, fd)
	}
}

// TestNativeProcDies: the proc that died first is to blame, not those that the launcher has killed
// for it, with the status that the launcher knows.
func TestNativeProcDies(t *testing.T) {
	job := testJob("fake waits", 2, 3)
	fakeSite(t, job, 1, "well")
	job.Sites[0].Program.Env[modeVariable] = "block"
	all := start(t, job)
	pid := all[1].out.Number(t, "[beta] rank 1 pid ")
	all[1].out.Line(t, "[beta] rank 0 pid ")
	all[1].out.Line(t, "[beta] rank 2 pid ")
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const text = "rank 3 on site beta ended without MPI Finalize"
	f := end(all)
	if f[0] == nil || f[1] == nil || f[0].Text != text || f[1].Text != text+"; mpirun exited with status 137, and said: rank 1 ended with 137" {
		t.Fatalf("alpha: %+v, beta: %+v", f[0], f[1])
	}
	if !f[0].Remote || f[1].Remote || f[1].Status != 137 {
		t.Errorf("alpha: %+v, beta: %+v", f[0], f[1])
	}
}

// TestNativeProcExitsLate: the status of a proc after Finalize is known by the launcher's.
func TestNativeProcExitsLate(t *testing.T) {
	job := testJob("fake 4", 2)
	fakeSite(t, job, 0, "lenient")
	f := end(start(t, job))[0]
	if f == nil || f.Text != "site alpha: mpirun exited with status 4" || f.Status != 4 {
		t.Errorf("%+v", f)
	}
}

// TestNativeLauncherIsKilled: the job ends by that and not by the procs that die of it, and nothing
// is left of these.
func TestNativeLauncherIsKilled(t *testing.T) {
	for launcher, program := range map[string]string{"well": "fake stays", "tied": "fake waits"} {
		t.Run(launcher, func(t *testing.T) {
			job := testJob(program, 2)
			fakeSite(t, job, 0, launcher)
			job.Limits.Stop = 200 * time.Millisecond
			all := start(t, job)
			var procs []int
			for rank := range 2 {
				procs = append(procs, launchtest.Pidfd(t, all[0].out.Number(t, fmt.Sprintf("[alpha] rank %d pid ", rank))))
			}
			<-all[0].n.ready
			if err := unix.Kill(all[0].n.native.PID(), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			wantAll(t, all, "site alpha: mpirun was killed by SIGKILL before the procs had passed MPI Finalize")
			for _, fd := range procs {
				launchtest.AwaitEnd(t, fd)
			}
		})
	}
}

// TestNativeDaemonIsKilled: the job ends when what a launcher has started the procs by has died,
// although the launcher and the procs go on.
func TestNativeDaemonIsKilled(t *testing.T) {
	job := testJob("fake waits", 2)
	fakeSite(t, job, 0, "proxied")
	job.Limits.Stop = 200 * time.Millisecond
	all := start(t, job)
	var procs []int
	for rank := range 2 {
		procs = append(procs, launchtest.Pidfd(t, all[0].out.Number(t, fmt.Sprintf("[alpha] rank %d pid ", rank))))
	}
	daemon := all[0].out.Number(t, "[alpha] proxy ")
	<-all[0].n.ready
	if err := unix.Kill(daemon, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f := end(all)[0]
	want := fmt.Sprintf(`^site alpha: \S+ \(process %d\), which had started procs of the site's own MPI on host 127\.0\.0\.2, has ended without them$`, daemon)
	if f == nil || !regexp.MustCompile(want).MatchString(f.Text) || f.Status != ending.StatusNode {
		t.Errorf("%+v, want %s", f, want)
	}
	for _, fd := range procs {
		launchtest.AwaitEnd(t, fd)
	}
}

// TestNativeLauncherDoesNotEnd: a job whose procs have ended does not wait for their launcher for
// ever.
func TestNativeLauncherDoesNotEnd(t *testing.T) {
	job := testJob("fake", 2)
	fakeSite(t, job, 0, "hangs")
	job.Limits.Stop = 200 * time.Millisecond
	all := start(t, job)
	f := end(all)[0]
	if f == nil || !strings.HasPrefix(f.Text, "site alpha: mpirun still runs 200ms after all of its procs have ended, and is stopped now") || f.Status != ending.StatusTimeout {
		t.Errorf("%+v", f)
	}
	if !all[0].n.native.Over() {
		t.Error("the launcher is left")
	}
}

// TestNativeSiteEndsWithAnother: procs are told, and the launcher ends.
func TestNativeSiteEndsWithAnother(t *testing.T) {
	job := testJob("fake waits", 2, 1)
	fakeSite(t, job, 0, "well")
	job.Sites[1].Program.Env[modeVariable] = "abort"
	all := start(t, job)
	failures := end(all)
	if f := failures[0]; f == nil || !f.Remote || !strings.Contains(f.Text, "called MPI Abort") {
		t.Errorf("%+v", f)
	}
	if !all[0].n.native.Over() {
		t.Error("the launcher is left")
	}
}

// TestNativeOperatorEnds: the operator's signal ends the launcher, also before the procs are there.
func TestNativeOperatorEnds(t *testing.T) {
	job := testJob("waits elsewhere", 2)
	fakeSite(t, job, 0, "well")
	job.Limits.Stop = 200 * time.Millisecond
	all := start(t, job)
	fd := launchtest.Pidfd(t, all[0].out.Number(t, "[alpha] rank 0 pid "))
	all[0].cancel(context.Canceled)
	if f := end(all)[0]; f == nil || !strings.HasPrefix(f.Text, "the operator ended the job at site alpha") {
		t.Errorf("%+v", f)
	}
	launchtest.AwaitEnd(t, fd)
}

// TestNativeSites: a job of a site of Open MPI, one of MPICH and one of ours, in whose programs all
// talk to all.
func TestNativeSites(t *testing.T) {
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	for _, tool := range []string{"mpicc.openmpi", "mpirun.openmpi", "mpicc.mpich", "mpirun.mpich"} {
		if _, err := exec.LookPath(tool); err != nil {
			skips.NotRun(t, "there is no "+tool, "apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich")
		}
	}
	for _, c := range []struct {
		mode   string
		memory bool // the sites have shared memory, which they prefer
	}{{"all", false}, {"all", true}, {"forms", false}, {"forms", true}} {
		t.Run(fmt.Sprintf("%s %t", c.mode, c.memory), func(t *testing.T) {
			job := testJob(c.mode, 2, 2, 1)
			job.Sites[0].Native = &config.Native{MPICC: "mpicc.openmpi", Launch: []string{"mpirun", "--oversubscribe", "-n", "{procs}"}}
			job.Sites[1].Native = &config.Native{MPICC: "mpicc.mpich"}
			want := wireup.PathNative
			if c.memory {
				want = wireup.PathDirect
				for i := range job.Sites {
					job.Sites[i].Transports = []config.Transport{builtin("shm"), builtin("tcp")}
				}
			}
			all := start(t, job)
			wantNone(t, all)
			for i, name := range []string{"Open MPI", "MPICH"} {
				if got := all[i].n.routes.Native; !strings.HasPrefix(got, name) {
					t.Errorf("site %d has %q", i, got)
				}
				first := wire.WorldRank(2 * i)
				if got := all[i].n.direct.Path(direct.Pair{Local: first, Peer: first + 1}); got != want {
					t.Errorf("within site %d: by %s, want %s", i, got, want)
				}
			}
		})
	}
}
