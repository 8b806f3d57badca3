package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// managedEnd says how a rank of managedProgram ends: RANK:HOW.
const managedEnd = "IMPI_TEST_END"

// managedProgram has each rank say who it is, and check that all are there.
func managedProgram() error {
	world := mpi.World()
	rank, size := world.Rank(), world.Size()
	if mpi.Parent() != nil {
		fmt.Printf("child %d of %d\n", rank, size)
		return nil
	}
	ranks := make([]int64, size)
	if err := mpi.Allgather(world, []int64{int64(rank)}, ranks); err != nil {
		return err
	}
	for i, r := range ranks {
		if int64(i) != r {
			return fmt.Errorf("rank %d says that it is %d", i, r)
		}
	}
	number, _, err := world.Attr(mpi.AppNum)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(os.Environ(), func(v string) bool { return !strings.HasPrefix(v, "PMI_") && !strings.HasPrefix(v, "PMIX_") })
	fmt.Printf("rank %d of %d, program %v, %s\n", rank, size, number, strings.Join(left, " "))
	at, how, _ := strings.Cut(os.Getenv(managedEnd), ":")
	switch how {
	case "":
		return nil
	case "lost":
		return losesRanks(at, os.Getpid, true)
	case "records":
		return tellsRecords(at)
	case "node": // which that rank has started
		return losesRanks(at, func() int { return treeOf(os.Getpid())[1] }, false)
	}
	if err := mpi.Barrier(world); err != nil { // all have printed
		return err
	}
	if at != fmt.Sprint(rank) {
		hang()
	}
	switch how {
	case "abort":
		mpi.Abort(7, "as the test wants")
	case "kill":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "exit":
		os.Exit(0)
	case "spawn":
		self, err := os.Executable()
		if err != nil {
			return err
		}
		_, _, err = mpi.Self().Spawn(mpi.Command{Path: self, Procs: 2}, 0)
		return err
	}
	return nil
}

// losesRanks has some ranks be lost, as FIRST or FIRST-LAST: the first of them kills a process when
// the others are ready. If each is to end by itself, the others of them do so right before: a
// launcher may end them all with one, or not see that it has ended as long as its node has its
// output.
func losesRanks(ranks string, victim func() int, each bool) error {
	from, to, several := strings.Cut(ranks, "-")
	if !several {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	world := mpi.World()
	rank := world.Rank()
	if rank < first || rank > last || rank != first && !each {
		losesMachine(fmt.Sprintf("%d-%d", first, last))
		return nil
	}
	if err := mpi.Barrier(world); err != nil {
		return err
	}
	word := make([]int64, 1)
	if rank != first {
		if _, err := mpi.Recv(world, word, first, 2); err != nil {
			return err
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	for range world.Size() - (last - first + 1) {
		if _, err := mpi.Recv(world, word, mpi.AnySource, 1); err != nil {
			return err
		}
	}
	for other := first + 1; each && other <= last; other++ {
		if err := mpi.Send(world, word, other, 2); err != nil {
			return err
		}
	}
	if err := syscall.Kill(victim(), syscall.SIGKILL); err != nil {
		return err
	}
	for {
		hang()
	}
}

// asManaged is the environment of processes that a process manager starts, which are
// managedProgram.
func asManaged(t *testing.T, env ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append(append(os.Environ(), asNode+"=1", asProgram+"=managed", "IMPI_NODE="+self), env...)
}

// manager is a process manager that does as a test says: it speaks PMI-1.
type manager struct {
	t       *testing.T
	size    int
	mapping string
	kills   bool              // it ends all when one has failed, or aborts
	answers map[string]string // instead of its own, by the beginning of what is asked; "-": it hangs up

	mu        sync.Mutex
	values    map[string]string
	waiting   int
	fence     chan struct{}
	finalized int
	aborts    []string
	cancel    func()
}

// run has some processes be managedProgram, and gives what they print and how they end.
func (m *manager) run(env ...string) (out string, statuses []int) {
	m.t.Helper()
	m.values, m.fence = map[string]string{}, make(chan struct{})
	var text bytes.Buffer
	output := &locked{w: &text}
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	m.cancel = cancel
	var served, ended sync.WaitGroup
	statuses = make([]int, m.size)
	for rank := range m.size {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			m.t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(fds[0]), "manager"), os.NewFile(uintptr(fds[1]), "client")
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(asManaged(m.t, "PMI_FD=3", fmt.Sprintf("PMI_RANK=%d", rank), fmt.Sprintf("PMI_SIZE=%d", m.size), "MPIR_CVAR_CH3_INTERFACE_HOSTNAME=127.0.0.1"), env...)
		cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = output, output, []*os.File{theirs}
		if err := cmd.Start(); err != nil {
			m.t.Fatal(err)
		}
		_ = theirs.Close()
		served.Go(func() { m.serve(rank, ours) })
		ended.Go(func() {
			_ = cmd.Wait()
			if statuses[rank] = cmd.ProcessState.ExitCode(); statuses[rank] != 0 && m.kills {
				cancel()
			}
		})
	}
	ended.Wait()
	m.mu.Lock()
	if m.waiting > 0 {
		close(m.fence) // nobody comes any more
		m.fence = make(chan struct{})
	}
	m.mu.Unlock()
	served.Wait()
	return text.String(), statuses
}

// locked is a writer for several processes.
type locked struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (m *manager) serve(rank int, f *os.File) {
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		answer := m.answer(rank, lines.Text())
		if answer == "-" {
			return
		}
		if answer != "" {
			_, _ = f.WriteString(answer + "\n")
		}
	}
}

func (m *manager) answer(rank int, asked string) string {
	for begin, answer := range m.answers {
		if strings.HasPrefix(asked, begin) {
			return answer
		}
	}
	fields := map[string]string{}
	for _, word := range strings.Fields(asked) {
		key, value, _ := strings.Cut(word, "=")
		fields[key] = value
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch fields["cmd"] {
	case "init":
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
	case "get_maxes":
		return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"
	case "get_appnum":
		return fmt.Sprintf("cmd=appnum appnum=%d", rank%2)
	case "get_my_kvsname":
		return "cmd=my_kvsname kvsname=kvs"
	case "put":
		m.values[fields["key"]] = fields["value"]
		return "cmd=put_result rc=0"
	case "get":
		if value, found := m.values[fields["key"]]; found {
			return "cmd=get_result rc=0 value=" + value
		}
		if fields["key"] == "PMI_process_mapping" && m.mapping != "" {
			return "cmd=get_result rc=0 value=" + m.mapping
		}
		return "cmd=get_result rc=-1 msg=not_found"
	case "barrier_in":
		fence := m.fence
		if m.waiting++; m.waiting == m.size {
			m.waiting, m.fence = 0, make(chan struct{})
			close(fence)
		}
		m.mu.Unlock()
		<-fence
		m.mu.Lock()
		return "cmd=barrier_out"
	case "finalize":
		m.finalized++
		return "cmd=finalize_ack"
	case "abort":
		if m.aborts = append(m.aborts, fields["exitcode"]); m.kills {
			m.cancel()
		}
		return ""
	}
	return "-"
}

// wantRanks wants each rank to have said who it is.
func wantRanks(t *testing.T, out string, size int, program func(rank int) int) {
	t.Helper()
	for rank := range size {
		if line := fmt.Sprintf("rank %d of %d, program %d, \n", rank, size, program(rank)); strings.Count(out, line) != 1 {
			t.Errorf("the output does not have %q once", line)
		}
	}
	if t.Failed() {
		t.Logf("the output:\n%s", out)
	}
}

// TestManagerOfTests: ranks and sizes are those of PMI, whatever ranks are where.
func TestManagerOfTests(t *testing.T) {
	for name, mapping := range map[string]string{
		"one machine": "(vector,(0,1,4))", "two machines": "(vector,(0,2,2))", "in turns": "(vector,(0,2,1))",
		"it does not say": "", "it says nothing": "(void)",
	} {
		t.Run(name, func(t *testing.T) {
			m := &manager{t: t, size: 4, mapping: mapping}
			out, statuses := m.run()
			wantRanks(t, out, 4, func(rank int) int { return rank % 2 })
			if fmt.Sprint(statuses) != "[0 0 0 0]" || m.finalized != 4 || len(m.aborts) > 0 {
				t.Errorf("statuses %v, %d finalized, aborts %v\n%s", statuses, m.finalized, m.aborts, out)
			}
		})
	}
}

// TestManagedFailures: how one rank ends ends the others, and is said before they end.
func TestManagedFailures(t *testing.T) {
	for _, c := range []struct{ how, status, says string }{
		{"abort", "7", "impi-node: rank 1 on site local called MPI Abort with code 7: as the test wants\n"},
		{"kill", "1", "impi-node: rank 1 on site local ended without MPI Finalize\n"},
		{"exit", "1", "impi-node: rank 1 on site local ended without MPI Finalize\n"},
	} {
		for _, mapping := range []string{"(vector,(0,1,4))", "(vector,(0,2,2))"} {
			t.Run(c.how+mapping, func(t *testing.T) {
				m := &manager{t: t, size: 4, mapping: mapping}
				out, statuses := m.run(managedEnd + "=1:" + c.how)
				for rank, s := range statuses {
					if rank != 1 && fmt.Sprint(s) != c.status {
						t.Errorf("rank %d ends with status %d, not %s", rank, s, c.status)
					}
				}
				if !strings.Contains(out, c.says) || m.finalized > 0 || len(m.aborts) < 3 || strings.Trim(strings.Join(m.aborts, ""), c.status) != "" {
					t.Errorf("%d finalized, aborts %q, want those of three ranks with %s, and %q\n%s", m.finalized, m.aborts, c.status, c.says, out)
				}
			})
		}
	}
}

// TestManagedGoesOn: with IMPI_SURVIVE=1 a job goes on without a rank that is killed, also one that
// has started a node, and nobody aborts. The head says at the end which it was.
func TestManagedGoesOn(t *testing.T) {
	for _, mapping := range []string{"(vector,(0,1,4))", "(vector,(0,2,2))"} {
		for _, lost := range []int{0, 1, 2, 3} {
			t.Run(fmt.Sprint(lost, mapping), func(t *testing.T) {
				m := &manager{t: t, size: 4, mapping: mapping}
				out, statuses := m.run(fmt.Sprintf("%s=%d:lost", managedEnd, lost), bootstrap.SurviveVariable+"=1")
				want := []int{0, 0, 0, 0}
				want[lost] = -1
				says := fmt.Sprintf("impi-node: rank %d on site local ended without MPI Finalize; the job went on without it\n", lost)
				if !slices.Equal(statuses, want) || strings.Count(out, "went on\n") != 3 || strings.Count(out, says) != 1 || m.finalized != 3 || len(m.aborts) > 0 {
					t.Errorf("statuses %v, %d finalized, aborts %q, want %q\n%s", statuses, m.finalized, m.aborts, says, out)
				}
			})
		}
	}
	t.Run("a node", func(t *testing.T) { // whose ranks end, and do not end the others
		m := &manager{t: t, size: 4, mapping: "(vector,(0,2,2))"}
		out, statuses := m.run(managedEnd+"=2-3:node", bootstrap.SurviveVariable+"=1")
		if !slices.Equal(statuses, []int{0, 0, 1, 1}) || strings.Count(out, "went on\n") != 2 || m.finalized != 2 || len(m.aborts) > 0 {
			t.Errorf("statuses %v, %d finalized, aborts %q\n%s", statuses, m.finalized, m.aborts, out)
		}
	})
	t.Run("not at all ranks", func(t *testing.T) {
		m := &manager{t: t, size: 4, mapping: "(vector,(0,2,2))", kills: true}
		if out, _ := m.run(managedEnd+"=2:unlike", bootstrap.SurviveVariable+"=1"); !strings.Contains(out, "IMPI_SURVIVE is not the same at ranks 0 and 2: give it to all ranks") {
			t.Error(out)
		}
	})
	t.Run("no value", func(t *testing.T) {
		m := &manager{t: t, size: 2, mapping: "(vector,(0,1,2))", kills: true}
		if out, _ := m.run(bootstrap.SurviveVariable + "=yes"); !strings.Contains(out, `IMPI_SURVIVE="yes": it can be 1`) {
			t.Error(out)
		}
	})
}

// leaveInInit joins the job of a process manager, and is gone for its node from then on, but for
// its process.
func leaveInInit() error {
	m, err := bootstrap.Join()
	if err != nil {
		return err
	}
	if err := m.Control.Close(); err != nil {
		return err
	}
	hang()
	return nil
}

// TestManagedThatLivesOn: a rank that fails in Init, or closes its connection to the node there,
// and whose process goes on, ends the job at once: nobody waits for the limit of the start.
func TestManagedThatLivesOn(t *testing.T) {
	for _, c := range []struct{ how, mapping, says string }{
		{"closes", "(vector,(0,1,4))", "impi-node: proc 1 of site local closed its connection to the node"},
		{"closes", "(vector,(0,2,2))", "impi-node: proc 1 of site local closed its connection to the node"},
		{"fails", "(vector,(0,4,1))", "impi: mpi.Init: rank 1 of 4 cannot join the job, which ends: IMPI_NODE=/nowhere: stat "},
	} {
		t.Run(c.how+c.mapping, func(t *testing.T) {
			m := &manager{t: t, size: 4, mapping: c.mapping, kills: true}
			out, statuses := m.run(managedEnd + "=1:" + c.how)
			if !strings.Contains(out, c.says) || strings.Contains(out, "have passed since") || statuses[0] == 0 || len(m.aborts) == 0 {
				t.Errorf("statuses %v, aborts %v, want %q\n%s", statuses, m.aborts, c.says, out)
			}
		})
	}
}

// TestMalformedPMI: what is wrong with PMI is in the message of Init, and nobody waits for
// anything.
func TestMalformedPMI(t *testing.T) {
	long := "cmd=get_result rc=0 value=" + strings.Repeat("x", 70<<10)
	for name, c := range map[string]struct {
		env     string
		answers map[string]string
		says    string
	}{
		"gone at once":    {"", map[string]string{"cmd=init": "-"}, "the process manager does not answer"},
		"version":         {"", map[string]string{"cmd=init": "cmd=response_to_init pmi_version=9 rc=0"}, "speaks PMI-9, not PMI-1"},
		"refused":         {"", map[string]string{"cmd=init": "cmd=response_to_init rc=-1 msg=no"}, "refuses"},
		"no answer":       {"", map[string]string{"cmd=get_maxes": "hello"}, "is no key=value"},
		"mapping":         {"", map[string]string{"cmd=get kvsname=kvs key=PMI": "cmd=get_result rc=0 value=(vector,(0,0,1))"}, "PMI_process_mapping"},
		"endless":         {"", map[string]string{"cmd=get kvsname=kvs key=PMI": long}, "more than 65536 bytes"},
		"put":             {"", map[string]string{"cmd=put": "cmd=put_result rc=-1 msg=full"}, "put_result with rc=-1 full"},
		"fence":           {"", map[string]string{"cmd=barrier_in": "-"}, "the process manager does not answer"},
		"no place":        {"", map[string]string{"cmd=get kvsname=kvs key=impi": "cmd=get_result rc=-1"}, "rank 0 has not published where its node is: it is not in PMI's key-value space"},
		"half an address": {"", map[string]string{"cmd=get kvsname=kvs key=impi": `cmd=get_result rc=0 value={"socket":"x"`}, "the node address of block 0"},
		"empty place":     {"", map[string]string{"cmd=get kvsname=kvs key=impi": `cmd=get_result rc=0 value={"socket":""}`}, "lacks a socket"},
		"another place":   {"", map[string]string{"cmd=get kvsname=kvs key=impi": `cmd=get_result rc=0 value={"socket":"impi-nowhere"}`}, "its socket cannot be reached"},
		"rank":            {"PMI_RANK=x", nil, `PMI_RANK="x" in the environment is no number`},
		"rank above":      {"PMI_RANK=2", nil, "rank 2 of 2"},
		"descriptor":      {"PMI_FD=x", nil, `PMI_FD="x" in the environment is no number of a descriptor`},
		"closed":          {"PMI_FD=77", nil, "PMI_FD=77 is not open"},
		"version of PMI":  {"IMPI_PMI=3", nil, "there is no PMI-3 here"},
		"no node":         {"IMPI_NODE=/nowhere/impi-node", nil, "IMPI_NODE=/nowhere/impi-node: stat"},
		"no program":      {"IMPI_NODE=/dev/null", nil, "IMPI_NODE=/dev/null: it is no program"},
		"other program":   {"IMPI_NODE=/bin/true", nil, "/bin/true does not say where it is"},
		"network":         {"IMPI_NETWORK=198.51.100.0/24", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &manager{t: t, size: 2, mapping: "(vector,(0,1,2))", answers: c.answers, kills: true}
			if name == "network" {
				m.mapping, c.says = "(vector,(0,2,1))", "IMPI_NETWORK=198.51.100.0/24 is none of this machine's networks or interfaces"
			}
			env := c.env
			if env == "" {
				env = "IMPI_TEST_NOTHING="
			}
			out, statuses := m.run(env)
			if !strings.Contains(out, "mpi.Init: ") || !strings.Contains(out, c.says) || statuses[0] == 0 || statuses[1] == 0 {
				t.Errorf("statuses %v, want %q\n%s", statuses, c.says, out)
			}
		})
	}
}

// hydra runs mpiexec.hydra.
func hydra(t *testing.T, env []string, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), skips.ProgramOf(t, "mpiexec.hydra", "mpich"), args...)
	cmd.Env = asManaged(t, env...)
	b, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func noProgram(int) int { return 0 }

// TestHydra has MPICH's mpiexec.hydra start a world on this machine.
func TestHydra(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  string
		args []string
	}{
		"PMI_FD": {"IMPI_PMI=1", nil}, "PMI_PORT": {"IMPI_PMI=1", []string{"-pmi-port"}}, "PMI-2": {"IMPI_PMI=2", nil},
		"two machines": {"IMPI_PMI=1", []string{"-launcher", "fork", "-hosts", "127.0.0.2,127.0.0.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, status := hydra(t, []string{c.env}, append(c.args, "-n", "4", self)...)
			wantRanks(t, out, 4, noProgram)
			if status != 0 {
				t.Errorf("status %d\n%s", status, out)
			}
		})
	}
	t.Run("two programs", func(t *testing.T) {
		out, status := hydra(t, nil, "-n", "2", self, ":", "-n", "1", self)
		wantRanks(t, out, 3, func(rank int) int { return rank / 2 })
		if status != 0 {
			t.Errorf("status %d", status)
		}
	})
	t.Run("spawn", func(t *testing.T) {
		out, status := hydra(t, []string{managedEnd + "=0:spawn"}, "-n", "1", self)
		if status != 0 || !strings.Contains(out, "child 0 of 2\n") || !strings.Contains(out, "child 1 of 2\n") {
			t.Errorf("status %d\n%s", status, out)
		}
	})
	t.Run("goes on without a machine", func(t *testing.T) {
		out, _ := hydra(t, []string{managedEnd + "=2-3:lost", bootstrap.SurviveVariable + "=1"}, "-launcher", "fork", "-hosts", "127.0.0.2,127.0.0.3", "-ppn", "2", "-disable-auto-cleanup", "-n", "4", self)
		if strings.Count(out, "went on\n") != 2 || !strings.Contains(out, "; the job went on without ") {
			t.Errorf("%s", out)
		}
	})
	t.Run("no node", func(t *testing.T) {
		out, status := hydra(t, []string{"IMPI_NODE=/nowhere"}, "-n", "1", self)
		wantRanks(t, out, 1, noProgram)
		if status != 0 {
			t.Errorf("status %d: one rank needs no node", status)
		}
	})
	t.Run("abort", func(t *testing.T) {
		out, status := hydra(t, []string{managedEnd + "=1:abort"}, "-n", "3", self)
		if status != 7 || !strings.Contains(out, "rank 1 on site local called MPI Abort with code 7: as the test wants") {
			t.Errorf("status %d\n%s", status, out)
		}
	})
	t.Run("kill", func(t *testing.T) {
		if out, status := hydra(t, []string{managedEnd + "=1:kill"}, "-n", "3", self); status == 0 {
			t.Errorf("status 0\n%s", out)
		}
	})
	// All end. Hydra sees that a connection for PMI is closed early and ends the others by a signal,
	// whose status it takes for 0 or not, as with MPICH's programs; or our node is the first to see
	// it.
	t.Run("exit", func(t *testing.T) {
		out, _ := hydra(t, []string{managedEnd + "=1:exit"}, "-n", "3", self)
		wantRanks(t, out, 3, noProgram)
	})
}

// TestHydraBySSH has mpiexec.hydra start a world on three machines.
func TestHydraBySSH(t *testing.T) {
	path := skips.ProgramOf(t, "mpiexec.hydra", "mpich")
	machines := netns.New(t, 3)
	config := sshtest.StartOn(t, machines)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, end string, more ...string) (out string, status int) {
		t.Helper()
		args := append([]string{"-localhost", "10.77.0.1", "-hosts", "10.77.0.1,10.77.0.2,10.77.0.3"}, more...)
		cmd := machines[0].Command(t.Context(), path, append(args, self)...)
		cmd.Env = asManaged(t, "HYDRA_LAUNCHER_EXTRA_ARGS=-F "+config, managedEnd+"="+end)
		b, _ := cmd.CombinedOutput()
		for _, m := range machines {
			awaitEmpty(t, m)
		}
		return string(b), cmd.ProcessState.ExitCode()
	}
	testStarted(t, run, []string{"-n", "6", "-ppn", "2"}, []string{"-n", "6", "-ppn", "1"})
}

// testStarted has a process manager start worlds of six procs, two of them on each of three
// machines, in the orders that its arguments ask for: all procs of a machine in a row, or one of
// each machine in turns.
func testStarted(t *testing.T, run func(t *testing.T, end string, more ...string) (out string, status int), inARow, inTurns []string) {
	t.Helper()
	for name, args := range map[string][]string{"in a row": inARow, "in turns": inTurns} {
		t.Run(name, func(t *testing.T) {
			out, status := run(t, "", args...)
			wantRanks(t, out, 6, noProgram)
			if status != 0 {
				t.Errorf("status %d\n%s", status, out)
			}
		})
	}
	t.Run("abort", func(t *testing.T) {
		out, status := run(t, "5:abort", inARow...)
		if status != 7 || !strings.Contains(out, "rank 5 on site local called MPI Abort with code 7: as the test wants") {
			t.Errorf("status %d\n%s", status, out)
		}
	})
	t.Run("kill", func(t *testing.T) {
		if out, status := run(t, "3:kill", inARow...); status == 0 {
			t.Errorf("status 0\n%s", out)
		}
	})
}

// TestSrun has a real Slurm start a world on three of its nodes.
func TestSrun(t *testing.T) {
	c := slurmtest.Start(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	srun := func(t *testing.T, mpi, end string, more ...string) (out string, status int) {
		t.Helper()
		args := append([]string{"--quiet", "--mpi=" + mpi, "-N3", "-n5"}, more...)
		cmd := exec.CommandContext(t.Context(), "srun", append(args, self)...)
		cmd.Env = append(asManaged(t, managedEnd+"="+end), c.Env()...)
		b, _ := cmd.CombinedOutput()
		skipWithoutCgo(t, string(b))
		return string(b), cmd.ProcessState.ExitCode()
	}
	for _, spoken := range []struct{ name, mpi, version string }{{"PMI-1", "pmi2", "1"}, {"PMI-2", "pmi2", "2"}, {"PMIx", "pmix", ""}} {
		for _, how := range []string{"block", "cyclic"} {
			t.Run(spoken.name+" "+how, func(t *testing.T) {
				t.Setenv("IMPI_PMI", spoken.version)
				out, status := srun(t, spoken.mpi, "", "--distribution="+how)
				wantRanks(t, out, 5, noProgram)
				if status != 0 {
					t.Errorf("status %d\n%s", status, out)
				}
			})
		}
	}
	for _, mpi := range []string{"pmi2", "pmix"} {
		// The others wait for it, and srun does nothing about one that only ends.
		for _, rank := range []string{"0", "4"} {
			t.Run(mpi+" rank "+rank+" fails in Init", func(t *testing.T) {
				out, status := srun(t, mpi, "", "sh", "-c", "[ $SLURM_PROCID != "+rank+" ] || export IMPI_NODE=/nowhere; exec \"$0\"")
				if status == 0 || !strings.Contains(out, "rank "+rank+" of 5 cannot join the job, which ends: IMPI_NODE=/nowhere: stat ") {
					t.Errorf("status %d\n%s", status, out)
				}
			})
		}
		t.Run(mpi+" abort", func(t *testing.T) {
			out, status := srun(t, mpi, "4:abort")
			if status == 0 || !strings.Contains(out, "rank 4 on site local called MPI Abort with code 7: as the test wants") {
				t.Errorf("status %d\n%s", status, out)
			}
		})
		for _, how := range []string{"kill", "exit"} {
			t.Run(mpi+" "+how, func(t *testing.T) {
				if out, status := srun(t, mpi, "2:"+how); status == 0 {
					t.Errorf("status 0\n%s", out)
				}
			})
		}
	}
}

// TestSrunGoesOn: a job of srun's goes on without a rank that is killed, and without a machine of
// which Slurm does not know that it is lost.
func TestSrunGoesOn(t *testing.T) {
	c := slurmtest.Start(t, 2)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mpi := range []string{"pmi2", "pmix"} {
		for _, lost := range []string{"0", "1", "2", "3"} {
			t.Run(mpi+" "+lost, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "srun", "--quiet", "--no-kill", "--kill-on-bad-exit=0", "--mpi="+mpi, "-N2", "-n4", self)
				cmd.Env = append(asManaged(t, managedEnd+"="+lost+":lost", bootstrap.SurviveVariable+"=1"), c.Env()...)
				b, _ := cmd.CombinedOutput()
				out := string(b)
				skipWithoutCgo(t, out)
				if strings.Count(out, "went on\n") != 3 || !strings.Contains(out, "impi-node: rank "+lost+" on site local ended without MPI Finalize; the job went on without it\n") {
					t.Errorf("%s", out)
				}
			})
		}
	}
}

// skipWithoutCgo skips a test of PMIx where the programs have refused it for their lack of cgo.
func skipWithoutCgo(t *testing.T, out string) {
	t.Helper()
	if strings.Contains(out, "built without cgo") {
		skips.NotRun(t, "libpmix is loaded by cgo", "install a C compiler, and do not set CGO_ENABLED=0")
	}
}

// book is an addressBook of a test.
type book struct {
	list  []config.Interface
	names map[string]string
	slurm string
}

func (b book) own() ([]config.Interface, error) { return b.list, nil }
func (b book) lookup(name string) []netip.Addr {
	if a, err := netip.ParseAddr(b.names[name]); err == nil {
		return []netip.Addr{a}
	}
	return nil
}
func (b book) scheduler(string) string { return b.slurm }

// TestOwnAddress: an address is one that somebody has named, or the only one.
func TestOwnAddress(t *testing.T) {
	at := func(text, device string) config.Interface {
		return config.Interface{Name: device, Address: netip.MustParseAddr(text)}
	}
	two := []config.Interface{at("10.1.0.5", "eth0"), at("172.17.0.1", "docker0"), at("fd00::5", "eth0")}
	for name, c := range map[string]struct {
		env  string // PMIx= is how the process manager calls the machine by PMIx
		book book
		want string // an address, or what the error has in it
	}{
		"the only one":         {"", book{list: two[:1]}, "10.1.0.5"},
		"IPv4 and IPv6":        {"", book{list: []config.Interface{two[0], two[2]}}, "10.1.0.5"},
		"IPv6":                 {"", book{list: two[2:]}, "fd00::5"},
		"two":                  {"", book{list: two}, "10.1.0.5 (eth0), 172.17.0.1 (docker0), fd00::5 (eth0): set IMPI_NETWORK"},
		"none":                 {"", book{}, "no interface but the loopback one is up"},
		"network":              {"IMPI_NETWORK=192.0.2.0/24,10.1.0.0/16", book{list: two}, "10.1.0.5"},
		"interface":            {"IMPI_NETWORK=docker0", book{list: two}, "172.17.0.1"},
		"address":              {"IMPI_NETWORK=fd00::5", book{list: two}, "fd00::5"},
		"another network":      {"IMPI_NETWORK=192.0.2.0/24", book{list: two}, "none of this machine's networks"},
		"hydra's address":      {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME=10.1.0.5", book{list: two}, "10.1.0.5"},
		"hydra's loopback":     {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME=127.0.0.2", book{list: two}, "127.0.0.2"},
		"hydra's name":         {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME=a", book{list: two, names: map[string]string{"a": "10.1.0.5"}}, "10.1.0.5"},
		"a name of elsewhere":  {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME=a", book{list: two, names: map[string]string{"a": "10.1.0.6"}}, "cannot tell which address"},
		"a name for loopback":  {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME=a", book{list: two, names: map[string]string{"a": "127.0.1.1"}}, "cannot tell which address"},
		"PMIx's address":       {"PMIx=10.1.0.5", book{list: two}, "10.1.0.5"},
		"PMIx's name":          {"PMIx=a", book{list: two, names: map[string]string{"a": "172.17.0.1"}}, "172.17.0.1"},
		"PMIx's own name":      {"PMIx=a", book{list: two, names: map[string]string{"a": "127.0.1.1"}}, "cannot tell which address"},
		"network before PMIx":  {"PMIx=10.1.0.5 IMPI_NETWORK=docker0", book{list: two}, "172.17.0.1"},
		"Slurm's name":         {"SLURMD_NODENAME=n1", book{list: two, names: map[string]string{"n1": "172.17.0.1"}}, "172.17.0.1"},
		"Slurm's address":      {"SLURMD_NODENAME=n1", book{list: two, slurm: "10.9.0.1"}, "10.9.0.1"},
		"network before Slurm": {"SLURMD_NODENAME=n1 IMPI_NETWORK=eth0", book{list: two, slurm: "10.9.0.1"}, "10.1.0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{}
			for _, v := range strings.Fields(c.env) {
				k, value, _ := strings.Cut(v, "=")
				env[k] = value
			}
			a, err := ownAddress(func(k string) string { return env[k] }, env["PMIx"], c.book)
			if got := a.String(); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %v, want %s", got, err, c.want)
			}
		})
	}
	if _, err := (thisMachine{}).own(); err != nil {
		t.Error(err)
	}
}
