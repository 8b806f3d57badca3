package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/netns"
)

// treeJob is sshJob with hosts that start two others each.
func treeJob(t *testing.T, count int, hosts string) (file string, machines []*netns.Machine) {
	t.Helper()
	file, machines = sshJob(t, count, hosts, "")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), `launch "ssh" {`, "launch \"ssh\" {\n fanout = 2", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, machines
}

// dialled returns the machines to which one has connections of ssh.
func dialled(t *testing.T, m *netns.Machine) (to []string) {
	t.Helper()
	for _, pid := range leftOn(t, m) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		if words[0] == "ssh" {
			to = append(to, words[len(words)-2])
		}
	}
	slices.Sort(to)
	return to
}

// TestTreeOfSSH: the head starts two hosts, and each of them two others, of eight. When the head is
// killed, or one in the middle, nothing stays anywhere.
func TestTreeOfSSH(t *testing.T) {
	for name, c := range map[string]struct {
		signal syscall.Signal
		says   string
		at     int // whose node is killed
	}{
		"head":   {syscall.SIGKILL, "", 0},
		"middle": {syscall.SIGKILL, "host 10.77.0.5 is lost", 4},
		"end":    {syscall.SIGTERM, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			file, machines := treeJob(t, 8, "10.77.0.[1-8]")
			head := startOn(t, file, "block", machines[:1])[0]
			for rank := range 16 {
				head.awaits(t, head.out, fmt.Sprintf("[%d] ready", rank))
			}
			for i, want := range [][]string{{"10.77.0.2", "10.77.0.5"}, {"10.77.0.3", "10.77.0.4"}, nil, nil, {"10.77.0.6", "10.77.0.7"}, nil, {"10.77.0.8"}, nil} {
				if got := dialled(t, machines[i]); !slices.Equal(got, want) {
					t.Errorf("machine %d has connections to %q, want %q", i+1, got, want)
				}
			}
			if c.at == 0 {
				_ = head.cmd.Process.Signal(c.signal)
			} else {
				killNode(t, machines[c.at])
			}
			if s := ends([]*machineNode{head}); s[0] == 0 || !strings.Contains(head.err.String(), c.says) {
				t.Errorf("status %d", s[0])
			}
			for _, m := range machines[1:] {
				awaitEmpty(t, m)
			}
		})
	}
}

// TestTreeOfSSHOutlived: procs that were spawned deep in the tree, have parted from their parents
// and outlive the job are not ended by the hosts between, for which nothing is left to do.
func TestTreeOfSSHOutlived(t *testing.T) {
	t.Setenv(spawnOrders, "0:1:10.77.0.8")
	t.Setenv(outlive, "1")
	file, machines := treeJob(t, 8, "10.77.0.[1-8]")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), "limits {", "limits {\n stop = \"1s\"", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	head := startOn(t, file, "spawnTree", machines[:1])[0]
	if s := ends([]*machineNode{head}); s[0] != 0 || !strings.Contains(head.out.String(), "] on its own at 10.77.0.8") {
		t.Errorf("status %d", s[0])
	}
	for _, m := range machines[1:] {
		awaitEmpty(t, m)
	}
}

// killNode kills the node of a machine.
func killNode(t *testing.T, m *netns.Machine) {
	t.Helper()
	for _, pid := range leftOn(t, m) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if words := strings.Split(string(b), "\x00"); len(words) > 1 && words[1] == hostVerb {
			_ = exec.Command("kill", "-9", fmt.Sprint(pid)).Run()
		}
	}
}

// TestTreeOfSSHFails: a host deep in the tree that cannot be reached is named at the head.
func TestTreeOfSSHFails(t *testing.T) {
	file, machines := treeJob(t, 5, "10.77.0.[1-6]")
	head := startOn(t, file, "meet", machines[:1])[0]
	if s := ends([]*machineNode{head}); s[0] == 0 || !strings.Contains(head.err.String(), "10.77.0.6: ") {
		t.Errorf("status %d", s[0])
	}
	for _, m := range machines[1:] {
		awaitEmpty(t, m)
	}
}

// TestShares: who divides a share and who belongs to it agree on it, each host is started once, and
// a thousand hosts are two steps away.
func TestShares(t *testing.T) {
	for _, c := range []struct{ hosts, fanout, steps int }{{2, 32, 1}, {33, 32, 1}, {34, 32, 2}, {1024, 32, 2}, {1024, 1024, 1}, {9, 2, 3}, {5, 1, 4}} {
		started, deepest := make([]int, c.hosts), 0
		var start func(s share, depth int)
		start = func(s share, depth int) {
			x := hostOrder{Site: "a", Share: s, Fanout: c.fanout, Hosts: make([]config.Host, c.hosts)}
			for i := range s.divide(c.fanout) {
				mine, err := x.own(fmt.Sprint(i))
				if err != nil {
					t.Fatal(err)
				}
				started[mine.First]++
				deepest = max(deepest, depth)
				if rest := (share{mine.First + 1, mine.End}); rest.First < rest.End {
					start(rest, depth+1)
				}
			}
			for _, wrong := range []string{"", "-1", "x", fmt.Sprint(len(s.divide(c.fanout)))} {
				if _, err := x.own(wrong); err == nil {
					t.Errorf("%q is a host", wrong)
				}
			}
		}
		start(share{1, c.hosts}, 1)
		for h, n := range started[1:] {
			if n != 1 {
				t.Errorf("%+v: host %d is started %d times", c, h+1, n)
			}
		}
		if deepest != c.steps {
			t.Errorf("%+v: %d steps", c, deepest)
		}
	}
}

// TestOrderWithFilesElsewhere: a host that another one has started looks where its own procs would
// write their calls, and leaves the report to the head. What is wrong is the machine's fault, which
// the head is told.
func TestOrderWithFilesElsewhere(t *testing.T) {
	for calls, want := range map[string]string{t.TempDir() + "/c-%r.json": "", "/none/c-%r.json": `-trace-calls: there is no folder "/none"`} {
		x := hostOrder{Hosts: []config.Host{{Address: netip.MustParseAddr("127.0.0.2"), Procs: 1}, {Address: netip.MustParseAddr("127.0.0.3"), Procs: 1}}}
		o, err := parseFlags([]string{
			"-programs", `[{"procs":2,"command":["/bin/true"]}]`, "-on", `{"engine":"ssh","hosts":[{"name":"127.0.0.2","procs":1},{"name":"127.0.0.3","procs":1}]}`,
			"-report", "/none/r.html", "-trace-calls", calls,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, found := x.job(o, func(netip.Addr) bool { return true })
		if want == "" && found.HasErrors() || want != "" && (!found.OfMachine() || !strings.Contains(found.Err().Error(), want)) {
			t.Errorf("%s: %v, want %q", calls, found.Err(), want)
		}
	}
}
