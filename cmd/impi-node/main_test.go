package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/support/chaos"
	"github.com/openimpi/impi/transports/tcp"
)

// The test binary is also impi-node, and the program that the nodes run.
const (
	asNode    = "IMPI_TEST_NODE"
	asProgram = "IMPI_TEST_PROGRAM"
)

// envProtocols makes this binary a plugin of another version of the protocol.
const envProtocols = "IMPI_TEST_PROTOCOLS"

// envChaos makes this binary the plugin of that name that disturbs links.
const envChaos = "IMPI_TEST_CHAOS"

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // which has each process sleep a second before it exits
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	if p := os.Getenv(asProgram); p != "" && !sdk.IsPlugin() && (os.Getenv("IMPI_CONTROL_FD") != "" || bootstrap.Started()) {
		program(p)
		os.Exit(0)
	}
	if v := os.Getenv(envProtocols); v != "" && sdk.IsPlugin() { // one of another age
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		sdk.Serve(sdk.Options{Transport: tcp.New(), Protocols: []int{n}})
	}
	if name := os.Getenv(envChaos); name != "" && sdk.IsPlugin() {
		sdk.Serve(sdk.Options{Transport: chaos.New(chaos.Options{Name: name, Around: []transports.Transport{tcp.New()}})})
	}
	if at := os.Getenv(envServeDNS); at != "" {
		s, err := newNameServer(at, 12) // two questions of each of six machines
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString("ready\n")
		s.serve()
	}
	if at := os.Getenv(envDNS); at != "" {
		askTestDNS(at)
	}
	if url := os.Getenv(envFetch); url != "" {
		if err := fetch(url); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if os.Getenv(asNode) != "" || sdk.IsPlugin() {
		main()
	}
	os.Exit(m.Run())
}

func program(mode string) {
	signal.Notify(enough, syscall.SIGUSR1) // before it says that it is ready
	early := make(chan os.Signal, 1)
	switch mode {
	case "never": // does it call Init
		os.Stdout.WriteString("ready\n")
		hang()
	case "early":
		signal.Notify(early, syscall.SIGUSR1)
	}
	at, how, _ := strings.Cut(os.Getenv(managedEnd), ":")
	me := mode == "managed" && at == os.Getenv("PMI_RANK")
	if me && how == "closes" {
		if err := leaveInInit(); err != nil {
			panic(err)
		}
	}
	switch {
	case me && how == "fails":
		_ = os.Setenv("IMPI_NODE", "/nowhere")
	case me && how == "unlike":
		_ = os.Unsetenv(bootstrap.SurviveVariable)
	}
	if err := mpi.Init(); err != nil {
		if me && how == "fails" {
			hang()
		}
		panic(err)
	}
	rank := mpi.World().Rank()
	switch mode {
	case "hello":
		os.Stdout.WriteString("hello\n")
	case "cpus":
		var allowed unix.CPUSet
		if err := unix.SchedGetaffinity(0, &allowed); err != nil {
			panic(err)
		}
		fmt.Println(allowed)
	case "meet":
		if err := mpi.Barrier(mpi.World()); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("met\n")
	case "by name", "by name, and block":
		if err := byName(); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("ready\n")
		if mode != "by name" {
			hang()
		}
	case "beats": // lasts for some signs of life of hosts
		<-time.After(2 * time.Second)
		os.Stdout.WriteString("met\n")
	case "collectives":
		if err := collectives(); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("alike\n")
	case "sum", "sum and stay": // of all ranks
		all := make([]int, 1)
		if err := mpi.Allreduce(mpi.World(), []int{rank}, all, mpi.Sum); err != nil {
			panic(err)
		}
		fmt.Println("sum", all[0])
		if mode != "sum" {
			hang()
		}
	case "busy": // until somebody gets SIGUSR1
		if err := busy(); err != nil {
			panic(err)
		}
	case "three":
		if rank == 1 {
			os.Exit(3)
		}
		hang()
	case "loses machine 2-3", "loses machine 2-5", "loses machine 0-5", "loses machine 6-11":
		losesMachine(mode[len("loses machine "):])
	case "loses site 0", "loses site 1":
		losesSite(int(os.Getenv(asProgram)[len("loses site ")] - '0'))
	case "stops a site":
		stopsSite()
	case "spare takes", "spare is absent", "spare is held", "spare replaces", "spare twice", "spare waits":
		onSpare(mode[len("spare "):])
	case "loses twice child", "loses twice leader", "loses twice children", "loses twice parent", "loses twice root", "loses twice beta", "loses twice alpha", "loses twice both", "loses twice spare":
		losesTwice(mode[len("loses twice "):])
	case "cuts a link":
		cutsLink()
	case "loses many":
		losesMany()
	case "exchange":
		if err := exchange(); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("ready\n")
		hang()
	case "cycle":
		if err := cycle(); err != nil {
			panic(err)
		}
	case "cycle over worlds":
		if err := cycleOverWorlds(); err != nil {
			panic(err)
		}
	case "family":
		if err := family(); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("ready\n")
		hang()
	case "spawnTree":
		if err := spawnTree(); err != nil {
			panic(err)
		}
	case "catch":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGUSR1)
		os.Stdout.WriteString("ready\n")
		<-c
	case "early":
		<-early
	case "managed":
		if err := managedProgram(); err != nil {
			panic(err)
		}
	case "block":
		os.Stdout.WriteString("ready\n")
		hang()
	}
	if err := mpi.Finalize(); err != nil {
		panic(err)
	}
}

// busy has all procs talk to each other, a hundred times a second, until one of them gets SIGUSR1.
func busy() error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	world := mpi.World()
	for round, over := 0, 0; over == 0; round++ {
		mine, all := make([]int, world.Size()), make([]int, world.Size())
		select {
		case <-c:
			mine[world.Rank()] = 1
		case <-time.After(10 * time.Millisecond):
		}
		if err := mpi.Allreduce(world, mine, all, mpi.Sum); err != nil {
			return err
		}
		for peer := range world.Size() { // each pair, whatever the collective operations use
			if peer == world.Rank() {
				continue
			}
			in, out := []int{0}, []int{round}
			if _, err := mpi.Sendrecv(world, out, peer, 1, in, peer, 1); err != nil {
				return err
			}
			if in[0] != round {
				return fmt.Errorf("rank %d is in round %d, and this one in %d", peer, in[0], round)
			}
		}
		for _, x := range all {
			over += x
		}
		if round == 0 {
			os.Stdout.WriteString("ready\n")
		}
	}
	os.Stdout.WriteString("over\n")
	return nil
}

// enough gets the signal that ends a program that hangs.
var enough = make(chan os.Signal, 1)

// hang waits for a signal, which few tests send.
func hang() { <-enough }

// command is impi-node with arguments, whose procs run program.
func command(t *testing.T, program string, args ...string) (cmd *exec.Cmd, out, err *bytes.Buffer) {
	t.Helper()
	self, e := os.Executable()
	if e != nil {
		t.Fatal(e)
	}
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	cmd = exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asNode+"=1", asProgram+"="+program)
	cmd.Stdout, cmd.Stderr = out, err
	return cmd, out, err
}

// impiNode runs impi-node to its end.
func impiNode(t *testing.T, program string, args ...string) (status int, out, err string) {
	t.Helper()
	cmd, o, e := command(t, program, args...)
	_ = cmd.Run() // the status says it
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

const twoSites = `
job { embedded_server {} }
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 1 }
}
site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
}
program { command = ["PROGRAM"] }
`

// patient is how long jobs may take to start, and a plugin half of it: it only keeps
// tests from hanging, however busy the machine is.
const patient = "\nlimits { start = \"5m\" }\n"

// file writes a job file whose program is this test binary, and which is patient if it
// does not say what it is.
func file(t *testing.T, text string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "limits {") {
		text += patient
	}
	path := filepath.Join(t.TempDir(), "job.hcl")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "PROGRAM", self)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lines(s string) map[string]int {
	m := make(map[string]int)
	for line := range strings.Lines(s) {
		m[strings.TrimSuffix(line, "\n")]++
	}
	return m
}

func TestWithoutAFile(t *testing.T) {
	self, _ := os.Executable()
	status, out, err := impiNode(t, "hello", "-n", "3", "--", self)
	got := lines(out)
	if status != 0 || len(got) != 3 || got["[0] hello"]+got["[1] hello"]+got["[2] hello"] != 3 || err != "" {
		t.Errorf("status %d\n%s\n%s", status, out, err)
	}
}

func TestWithoutPrefix(t *testing.T) {
	self, _ := os.Executable()
	if status, out, err := impiNode(t, "hello", "-no-prefix", "-n", "1", self); status != 0 || out != "hello\n" {
		t.Errorf("status %d\n%s\n%s", status, out, err)
	}
}

func TestAllSitesOfAFile(t *testing.T) {
	status, out, err := impiNode(t, "hello", "-config", file(t, twoSites))
	got := lines(out)
	if status != 0 || got["[0] hello"] != 1 || got["[1] hello"] != 1 {
		t.Errorf("status %d\n%s\n%s", status, out, err)
	}
}

func TestOneSiteOfAFileForEachCommand(t *testing.T) {
	server, e := loopback.Free()
	if e != nil {
		t.Fatal(e)
	}
	job := strings.Replace(twoSites, "embedded_server {}", fmt.Sprintf("embedded_server { listen = %q }", server), 1)
	job = strings.Replace(job, "job {", "job {\n auth \"key\" { env = \"KEY\" }", 1)
	path := file(t, job)
	t.Setenv("KEY", "4711")
	alpha, out, err := command(t, "hello", "-config", path, "-site", "alpha")
	if e := alpha.Start(); e != nil {
		t.Fatal(e)
	}
	status, out2, err2 := impiNode(t, "hello", "-config", path, "-site", "beta")
	if e := alpha.Wait(); e != nil || out.String() != "[0] hello\n" {
		t.Errorf("alpha: %v\n%s\n%s", e, out, err)
	}
	if status != 0 || out2 != "[1] hello\n" {
		t.Errorf("beta: status %d\n%s\n%s", status, out2, err2)
	}
}

func TestFailureIsPrintedOnceAndIsTheStatus(t *testing.T) {
	status, _, err := impiNode(t, "three", "-config", file(t, twoSites))
	const message = "rank 1 on site beta exited with status 3"
	if status != 3 || strings.Count(err, message) != 1 {
		t.Errorf("status %d\n%s", status, err)
	}
}

func TestSignalEndsAllSites(t *testing.T) {
	cmd, err := ready(t, "block", 2, "-config", file(t, twoSites))
	if e := cmd.Process.Signal(syscall.SIGTERM); e != nil {
		t.Fatal(e)
	}
	_ = cmd.Wait()
	if s := cmd.ProcessState.ExitCode(); s != 143 || !strings.Contains(err.String(), "the operator ended the job") {
		t.Errorf("status %d\n%s", s, err)
	}
}

func TestNodeOfASiteIsKilled(t *testing.T) {
	path := file(t, twoSites)
	cmd, _, err := command(t, "block", "-log-level", "debug", "-config", path)
	logs, e := os.Create(filepath.Join(t.TempDir(), "log"))
	if e != nil {
		t.Fatal(e)
	}
	defer logs.Close()
	cmd.Stderr = nil
	r, e := cmd.StderrPipe()
	if e != nil {
		t.Fatal(e)
	}
	if e := cmd.Start(); e != nil {
		t.Fatal(e)
	}
	beta := regexp.MustCompile(`the job runs: site=beta .*node_pid=(\d+)`)
	killed := false
	for buf := make([]byte, 4096); ; {
		n, e := r.Read(buf)
		err.Write(buf[:n])
		if m := beta.FindSubmatch(err.Bytes()); m != nil && !killed {
			killed = true
			pid := 0
			for _, c := range m[1] {
				pid = 10*pid + int(c-'0')
			}
			if e := syscall.Kill(pid, syscall.SIGKILL); e != nil {
				t.Fatal(e)
			}
		}
		if e != nil {
			break
		}
	}
	_ = cmd.Wait()
	if s := cmd.ProcessState.ExitCode(); s != 137 || !strings.Contains(err.String(), "site beta (client 1): its node was killed by SIGKILL") {
		t.Errorf("status %d\n%s", s, err)
	}
	if !regexp.MustCompile(`connection was lost before FINI .*: its node was killed by SIGKILL`).Match(err.Bytes()) { // in what site alpha says
		t.Errorf("the other site has not heard why:\n%s", err)
	}
}

func TestUsage(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "nothing to run"},
		{[]string{"-n", "2"}, "no program"},
		{[]string{"-n", "0", "true"}, "at least one proc"},
		{[]string{"-n", "2", "no-such-program"}, "no program \"no-such-program\""},
		{[]string{"-config", "a.hcl", "-n", "2"}, "leave out -n"},
		{[]string{"-site", "x", "-n", "2", "true"}, "-site needs a job file"},
		{[]string{"-frobnicate"}, "frobnicate"},
		{[]string{"-log-level", "loud", "-n", "1", "true"}, "-log-level"},
		{[]string{"-config", "no-such.hcl"}, "no-such.hcl"},
		{[]string{"help", "me"}, "no help on \"me\""},
		{[]string{"validate"}, "one job file"},
		{[]string{"validate", "missing.hcl"}, "there is no such job file"},
		{[]string{"validate", t.TempDir()}, "that is a folder, and no job file"},
		{[]string{"validate", self}, "that is no job file: it is no text"},
		{[]string{"-config", self}, "that is no job file: it is no text"},
		{[]string{"list"}, `there is no command "list"; did you mean "status"? (known here: abi, cert, completion, doctor, drain, help, links, manifest, native, plugins, ports, reload, report, status, top, ui, validate, version)`},
		{[]string{"validat", "job.hcl"}, `there is no command "validat"; did you mean "validate"?`},
		{[]string{"frobnicate", "-n", "4"}, `there is no command "frobnicate"; known here: abi, cert`},
		{[]string{"job.hcl"}, `to run a job file: impi-node -config job.hcl`},
		{[]string{"true", "-n", "4"}, "say how many procs are to run true, as in: impi-node -n 4 true"},
		{[]string{"./prog"}, "say how many procs are to run ./prog"},
		{[]string{"--", "true"}, "-n 0: at least one proc"},
		{[]string{"-config", file(t, twoSites), "-site", "gamma"}, "alpha, beta"},
		{[]string{"-config", file(t, twoSites), "-site", "beta"}, "no key in common"},
		{[]string{"-config", file(t, strings.Replace(twoSites, "job {", "job {\n auth \"none\" {}\n", 1)), "-site", "beta"}, "do not know the server's port"},
		{[]string{"-config", file(t, strings.ReplaceAll(twoSites, "127.0.0.", "203.0.113.")), "-site", ""}, "server"},
	} {
		status, out, err := impiNode(t, "hello", c.args...)
		if status != statusUsage || !strings.Contains(err, c.want) || out != "" {
			t.Errorf("%q: status %d, want %q in\n%s%s", c.args, status, c.want, out, err)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for args, want := range map[string]string{
		"help": "-config JOB.HCL", "help abi": "MPI_ERR_UNSUPPORTED_OPERATION", "-h": "Examples:", "help exit": "123", "help files": "embedded_server", "help site": "-site alpha", "version": "IMPI 0.0",
	} {
		if status, out, err := impiNode(t, "", strings.Fields(args)...); status != 0 || !strings.Contains(out, want) || err != "" {
			t.Errorf("%s: status %d\n%s%s", args, status, out, err)
		}
	}
}

func TestHelpHasAJobFileThatLoads(t *testing.T) {
	_, text, _ := strings.Cut(filesHelp, ":\n\n")
	text, _, _ = strings.Cut(text, "\nCheck yours")
	text = strings.Replace(text, "./ring", "PROGRAM", 1)
	if status, out, err := impiNode(t, "", "validate", file(t, text)); status != 0 {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
}

func TestValidate(t *testing.T) {
	good := file(t, twoSites)
	if status, out, err := impiNode(t, "", "validate", good); status != 0 || !strings.Contains(out, "2 sites, 2 procs") || err != "" {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
	status, _, err := impiNode(t, "", "validate", file(t, twoSites+"wether = 1\n"))
	if status != statusUsage || !strings.Contains(err, "job.hcl:12:1") || !strings.Contains(err, "wether = 1") {
		t.Errorf("status %d\n%s", status, err)
	}
	settings := file(t, twoSites+"\ntransport \"tcp\" {\n  config { nodelay = \"perhaps\" }\n}\n")
	status, _, err = impiNode(t, "", "validate", settings)
	if status != statusUsage || !strings.Contains(err, "nodelay") || !strings.Contains(err, "perhaps") {
		t.Errorf("status %d\n%s", status, err)
	}
	status, out, _ := impiNode(t, "", "validate", "-json", settings)
	var faults []map[string]any
	if e := json.Unmarshal([]byte(out), &faults); e != nil || status != statusUsage || len(faults) != 1 || faults[0]["severity"] != "error" {
		t.Errorf("status %d, %v\n%s", status, e, out)
	}
}
