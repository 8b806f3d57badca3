package nativelaunch

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/wireup"
)

// oneOf is the launch of a host of a native site of three, with 2, 1 and 2 procs.
func oneOf(self int) *Launch {
	site := config.Site{Name: "alpha", Native: &config.Native{MPICC: "mpicc"}}
	for i, n := range []int{2, 1, 2} {
		site.Hosts = append(site.Hosts, config.Host{Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), Procs: n})
	}
	site.Hosts[1].Name = "node2"
	rt := &routes.Table{Job: &config.Job{Limits: config.Limits{Start: time.Minute}}, Site: &site}
	o := &client.Cluster{ClusterConfig: client.ClusterConfig{Hosts: site.Hosts, Self: self}, Routes: rt}
	o.KeepOwnHost()
	l := New(Settings{Routes: rt, Cluster: o, Log: hclog.NewNullLogger(), Deadline: time.Now().Add(time.Hour)})
	l.place = native.Environment{Procs: l.total()}
	return l
}

func TestWords(t *testing.T) {
	l := oneOf(0)
	l.Dir = t.TempDir()
	for mpi, want := range map[string]string{
		"Open MPI 4.1.4": "mpirun -n 5 --hostfile " + l.Dir + "/hostfile",
		"MPICH 4.0.2":    "mpirun -n 5 -f " + l.Dir + "/machinefile",
	} {
		l.Routes.Native = mpi
		words, err := l.fill(l.words())
		if err != nil || strings.Join(words, " ") != want {
			t.Errorf("%s: %q, %v", mpi, words, err)
		}
	}
	for name, want := range map[string]string{
		"hostfile":    "10.0.0.1 slots=2\nnode2 slots=1\n10.0.0.3 slots=2\n",
		"machinefile": "10.0.0.1:2\nnode2:1\n10.0.0.3:2\n",
	} {
		if b, err := os.ReadFile(filepath.Join(l.Dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	l.Routes.Site.Native.Launch = []string{"srun", "-n{procs}", "-x", "{other}"}
	if words, err := l.fill(l.words()); err != nil || !slices.Equal(words, []string{"srun", "-n5", "-x", "{other}"}) {
		t.Errorf("%q, %v", words, err)
	}
	l = oneOf(0)
	l.Cluster = nil
	if words := l.words(); !slices.Equal(words, []string{"mpirun", "-n", "{procs}"}) {
		t.Errorf("on one machine: %q", words)
	}
}

// TestAdmit: a host takes the procs that the file has there, each once, in any order.
func TestAdmit(t *testing.T) {
	l := oneOf(2)
	g := &gathering{Launch: l, first: l.Routes.ProcsBefore, joined: make([]procs.Joined, 2)}
	come := func(rank, size int) wireup.Attached {
		return wireup.Attached{PID: 100 + rank, Message: wireup.Message{Peer: wire.WorldRank(rank), Size: size, Library: "MPICH Version:\t4.0.2"}, Conn: &wireup.Conn{}}
	}
	for _, c := range []struct {
		rank, size int
		says       string
	}{
		{4, 5, ""},
		{3, 4, "site alpha: the launcher of its own MPI has started 4 procs, and the file says 5: give it that number in launch, as {procs}"},
		{0, 1, "has started 1 proc, and"},
		{2, 5, "has placed rank 2 on host 10.0.0.3, and the file has it on node2: give it the hosts in the order of the file"},
		{1, 5, "has placed rank 1 on host 10.0.0.3, and the file has it on 10.0.0.1"},
		{5, 5, "has started a proc that says it is rank 5 of 5"},
		{-1, 5, "has started a proc that says it is rank -1 of 5"},
		{4, 5, "has started rank 4 twice, as processes 104 and 104"},
		{3, 5, ""},
	} {
		f := g.admit(come(c.rank, c.size))
		if (f == nil) != (c.says == "") || f != nil && !strings.Contains(f.Text, c.says) {
			t.Errorf("rank %d of %d: %v, want %q", c.rank, c.size, f, c.says)
		}
	}
	if g.count.Load() != 2 || g.joined[0].PID != 103 || g.joined[1].PID != 104 || l.Routes.Native != "MPICH 4.0.2" {
		t.Errorf("%d procs, %+v, of %s", g.count.Load(), g.joined, l.Routes.Native)
	}
}

func TestShortName(t *testing.T) {
	for text, want := range map[string]string{
		"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022": "Open MPI 4.1.4",
		"Open MPI v5.0.0rc1, package":                     "Open MPI 5.0.0rc1",
		"MPICH Version:\t4.0.2 MPICH Release date: today": "MPICH 4.0.2",
		"Intel(R) MPI Library 2021.8 for Linux* OS":       "Intel(R) MPI Library 2021.8",
		"something  odd":                                  "something odd",
		"":                                                "an unknown MPI",
	} {
		if got := shortName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestGist(t *testing.T) {
	if got := gist([]string{"-----", "There are  not", "", "  enough slots", "=====", "There are not", "x", "x"}); got != "There are not | enough slots | x" {
		t.Errorf("%q", got)
	}
	if got := gist([]string{"begin", strings.Repeat("é", 1000)}); len(got) > maxSaid+3 || !strings.HasPrefix(got, "begin | é") || !strings.HasSuffix(got, "é...") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestEndedEarly(t *testing.T) {
	l := oneOf(0)
	l.name = "mpirun"
	l.said = launch.NewOutput(os.Stderr, nil).Stream(nil)
	g := &gathering{Launch: l, joined: make([]procs.Joined, 2)}
	g.count.Store(1)
	if f := g.endedEarly(launch.Exit{Code: 3}); f.Text != "site alpha: mpirun exited with status 3 before all 5 procs had called MPI Init" || f.Status != 3 {
		t.Errorf("%+v", f)
	}
	if f := g.endedEarly(launch.Exit{}); f.Status != 1 || strings.Contains(f.Text, "impicc") {
		t.Errorf("%+v", f)
	}
}

// TestMeeting: the head tells the other hosts what it knows when it does, and waits until all are
// ready.
func TestMeeting(t *testing.T) {
	l := oneOf(0)
	m := &l.meeting
	said := agreed{Socket: "impi-X", Shim: "/x/shim.so", MPI: "MPICH 4"}
	ask := func(q question) (a agreed) {
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(m.answer(t.Context(), b), &a); err != nil {
			t.Error(err)
		}
		return a
	}
	early := make(chan agreed, 1)
	go func() { early <- ask(question{Host: 1}) }()
	met := make(chan error, 1)
	go func() { met <- m.together(t.Context(), l.Cluster, said) }()
	if a := <-early; a != said {
		t.Errorf("host 1 hears %+v", a)
	}
	for range 2 { // a host may say it again
		ask(question{Host: 1, Ready: true})
	}
	if late := m.late(l.Cluster); late != "host 10.0.0.3 is" {
		t.Errorf("%q", late)
	}
	select {
	case err := <-met:
		t.Errorf("the head does not wait: %v", err)
	default:
	}
	ask(question{Host: 2, Ready: true})
	if err := <-met; err != nil {
		t.Error(err)
	}
	for _, bad := range []string{`{"host":3}`, `{"host":0}`, `[]`} {
		if b := m.answer(t.Context(), []byte(bad)); string(b) != `"malformed"` {
			t.Errorf("%s: %s", bad, b)
		}
	}
}

func TestMeetingTakesTooLong(t *testing.T) {
	l := oneOf(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := l.meeting.together(ctx, l.Cluster, agreed{Socket: "x"})
	if err == nil || err.Error() != "site alpha: the start took too long, and hosts node2,10.0.0.3 are not ready for procs" {
		t.Error(err)
	}
}

// TestTwoNodesOnOneMachine: the second one says what is wrong.
func TestTwoNodesOnOneMachine(t *testing.T) {
	first, err := wireup.ListenAttach(wireup.AttachName())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = wireup.ListenAttach(strings.TrimPrefix(first.Addr().String(), "@"))
	if err = sameMachine(err); err == nil || !strings.HasPrefix(err.Error(), "two nodes of the site are on this machine") {
		t.Error(err)
	}
}

// TestSweep kills what has the variable, and nothing else.
func TestSweep(t *testing.T) {
	start := func(env ...string) *exec.Cmd {
		cmd := exec.Command("cat")
		cmd.Env = env
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	variable := native.Variable + "=" + wireup.AttachName()
	one, other := start("A=1", variable), start("A=1", variable+"x")
	if pids := startedWith(variable); !slices.Equal(pids, []int{one.Process.Pid}) {
		t.Errorf("%d have it, want %d", pids, one.Process.Pid)
	}
	sweep(variable, hclog.NewNullLogger())
	if err := one.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if pids := startedWith(variable + "x"); !slices.Equal(pids, []int{other.Process.Pid}) {
		t.Error("the other one was killed")
	}
}
