package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/transcript"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// machineJob writes the job of two sites, each on three machines of two procs, and gives the
// machines of the first site, then those of the second.
func machineJob(t *testing.T, more string) (file string, machines []*netns.Machine) {
	t.Helper()
	machines = netns.New(t, 6)
	return machineJobAt(t, `embedded_server { listen = "10.77.0.1:7800" }`, more), machines
}

// machineJobAt writes the file of machineJob for a server.
func machineJobAt(t *testing.T, server, more string) (file string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.key"), []byte("4242\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "job.hcl")
	if !strings.Contains(more, "limits {") {
		more += patient
	}
	text := fmt.Sprintf(`job {
  %s
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
  hosts  = "10.77.0.[1-3]"
  procs  = 2
}
site "beta" {
  client = 1
  hosts  = "10.77.0.[4-6]"
  procs  = 2
}
%s
program { command = [%q] }
`, server, more, self)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// machineNode is an impi-node on a machine.
type machineNode struct {
	cmd      *exec.Cmd
	dir      string // of its run directories
	apart    bool   // the machine has files of its own
	out, err *transcript.Writer
	over     chan struct{} // closed when it has ended
}

// awaits waits until the node has written text.
func (n *machineNode) awaits(t *testing.T, w *transcript.Writer, text string) {
	t.Helper()
	n.awaitsTimes(t, w, text, 1)
}

// awaitsTimes waits until the node has written text some times. The test ends if the node ends
// before that.
func (n *machineNode) awaitsTimes(t *testing.T, w *transcript.Writer, text string, times int) {
	t.Helper()
	if !w.Await(text, times) {
		t.Fatalf("it has ended, and never said %q", text)
	}
}

// command runs a command of impi-node on the node's machine.
func (n *machineNode) command(t *testing.T, m *netns.Machine, args ...string) (status int, out, errs string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if n.apart {
		self = programApart
	}
	cmd := m.Command(t.Context(), self, append(args, "-run-dir", n.dir)...)
	cmd.Env = n.cmd.Env
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// startOn runs impi-node on machines, the last one first: the heads come late.
func startOn(t *testing.T, file, mode string, machines []*netns.Machine) (nodes []*machineNode) {
	t.Helper()
	nodes = make([]*machineNode, len(machines))
	for i := len(machines) - 1; i >= 0; i-- {
		nodes[i] = startNode(t, machines[i], mode, "", "-config", file)
	}
	return nodes
}

// startNode runs impi-node on a machine, with a variable in its environment.
func startNode(t *testing.T, m *netns.Machine, mode, variable string, args ...string) *machineNode {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startNodeOf(t, self, m, mode, variable, args...)
}

// startNodeOf is startNode for another impi-node.
func startNodeOf(t *testing.T, path string, m *netns.Machine, mode, variable string, args ...string) *machineNode {
	t.Helper()
	return startNodeBy(t, m.Command(t.Context(), path, args...), m.Address, mode, variable)
}

// startNodeBy is startNode by a command for the machine with an address.
func startNodeBy(t *testing.T, cmd *exec.Cmd, address, mode, variable string) *machineNode {
	t.Helper()
	n := &machineNode{dir: launchtest.ShortDir(t), cmd: cmd}
	cmd.Env = append(os.Environ(), asNode+"=1", asProgram+"="+mode, "XDG_RUNTIME_DIR="+n.dir)
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	cmd.WaitDelay = time.Minute
	n.start(t, "machine "+address)
	return n
}

// start starts the node's command. If the test fails, what it has printed is shown under a title.
func (n *machineNode) start(t *testing.T, title string) {
	t.Helper()
	n.out, n.err, n.over = &transcript.Writer{}, &transcript.Writer{}, make(chan struct{})
	n.cmd.Stdout, n.cmd.Stderr = n.out, n.err
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = n.cmd.Wait()
		n.out.Close()
		n.err.Close()
		close(n.over)
	}()
	t.Cleanup(func() {
		_ = n.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("%s:\n%s%s", title, n.out, n.err)
		}
	})
}

// hangs is for how long a test waits for a node before it tells the node to end, so that the test
// fails and shows what the nodes have said.
const hangs = 5 * time.Minute

// ends waits for all nodes and gives their exit statuses.
func ends(nodes []*machineNode) (statuses []int) {
	late := time.After(hangs)
	for _, n := range nodes {
		select {
		case <-n.over:
		case <-late:
			for _, n := range nodes {
				_ = n.cmd.Process.Signal(syscall.SIGTERM)
			}
			<-n.over
		}
		statuses = append(statuses, n.cmd.ProcessState.ExitCode())
	}
	return statuses
}

// TestSitesOfSeveralMachines: one command on each of six machines makes one world, by each
// kind of links, whose output comes out at the head of each site.
func TestSitesOfSeveralMachines(t *testing.T) {
	for name, more := range map[string]string{
		"direct": "", "agents": `route "*" { direct = false }`, "resume": `route "*" { resume = true }`,
		"one port": `route "*" { data_plane = ["ring"] }`,
	} {
		t.Run(name, func(t *testing.T) {
			file, machines := machineJob(t, more)
			nodes := startOn(t, file, "meet", machines)
			for i, s := range ends(nodes) {
				if s != 0 {
					t.Errorf("machine %d: status %d", i, s)
				}
			}
			for rank := range 12 {
				head := nodes[rank/6*3]
				if !strings.Contains(head.out.String(), fmt.Sprintf("[%d] met\n", rank)) {
					t.Errorf("the head of site %d has nothing of rank %d", rank/6, rank)
				}
			}
			for _, i := range []int{1, 2, 4, 5} {
				if out := nodes[i].out.String(); out != "" {
					t.Errorf("machine %d writes by itself: %s", i, out)
				}
			}
		})
	}
}

// TestMachineLost: a machine that crashes or is cut off ends the job, and all others say which
// it was.
func TestMachineLost(t *testing.T) {
	for name, c := range map[string]struct {
		how  func(m *netns.Machine)
		says string
	}{
		"crash": {(*netns.Machine).Crash, "host 10.77.0.6 is lost"},
		"cable": {(*netns.Machine).Cut, "host 10.77.0.6 is lost: nothing was heard of it for"},
	} {
		t.Run(name, func(t *testing.T) {
			file, machines := machineJob(t, "")
			nodes := startOn(t, file, "block", machines)
			for rank := range 12 {
				nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
			}
			c.how(machines[5])
			statuses := ends(nodes[:5])
			for i, n := range nodes[:5] {
				if log := n.err.String(); statuses[i] == 0 || !strings.Contains(log, "site beta: "+c.says) || !strings.Contains(log, ": see on that machine whether impi-node was killed") {
					t.Errorf("machine %d: status %d", i, statuses[i])
				}
			}
			machines[5].Crash()
		})
	}
}

// TestCommandsOfOneMachine: on a machine that is not the head, links has all machines of both
// sites, and reload is for those of its own site alone.
func TestCommandsOfOneMachine(t *testing.T) {
	file, machines := machineJob(t, "")
	nodes := startOn(t, file, "block", machines)
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
	}
	at, m := nodes[1], machines[1]
	status, out, errs := at.command(t, m, "links", "-json", "-deadline", "60s")
	var got links.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != statusOK || len(got.Jobs) != 1 || len(got.Jobs[0].Sites) != 2 {
		t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
	}
	alpha, beta := got.Jobs[0].Sites[0], got.Jobs[0].Sites[1]
	if len(alpha.Nodes) != 3 || len(alpha.Ranks) != 6 || len(alpha.Agents) != 3 || !alpha.Here || beta.Here || len(beta.Nodes) != 3 || len(beta.Ranks) != 6 {
		t.Errorf("%+v\n%+v", alpha, beta)
	}
	for i, n := range alpha.Nodes {
		if n.Host != fmt.Sprintf("10.77.0.%d", 1+i) || n.Here != (i == 1) || n.Problem != "" {
			t.Errorf("%+v", n)
		}
	}
	if status, out, errs := at.command(t, m, "links", "-deadline", "60s"); status != statusOK || !strings.Contains(out, "10.77.0.1 10.77.0.2 10.77.0.3  3 nodes running") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	status, out, errs = at.command(t, m, "plugins", "reload", "tcp")
	for i := range 3 {
		if status != statusOK || strings.Count(out, fmt.Sprintf("site alpha, host 10.77.0.%d: tcp ", 1+i)) != 1 || strings.Count(out, "replaced by") != 3 {
			t.Errorf("status %d\n%s%s", status, out, errs)
		}
	}
	for _, n := range nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	ends(nodes)
}

// TestVerifyOnAllMachines: from any machine of a site the files of plugins are checked on all of
// them, and one that is not the trusted one is named with its machine.
func TestVerifyOnAllMachines(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := []byte("#!/bin/sh\n" + envChaos + "=own exec '" + self + "'\n")
	file, machines := machineJob(t, fmt.Sprintf("plugin_dir = env.PLUGINS\ntransport \"own\" {\n  plugin = \"impi-transport-own\"\n  sha256 = \"%x\"\n}\n", sha256.Sum256(program)))
	put := func(dir string, b []byte) {
		t.Helper()
		path := filepath.Join(dir, "impi-transport-own")
		if err := errors.Join(os.WriteFile(path+".new", b, 0o700), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	nodes, dirs := make([]*machineNode, 6), make([]string, 6)
	for i, m := range machines {
		dirs[i] = launchtest.ShortDir(t)
		put(dirs[i], program)
		nodes[i] = startNode(t, m, "block", "PLUGINS="+dirs[i], "-config", file)
	}
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
	}
	verify := func(args ...string) (int, string, string) {
		return nodes[1].command(t, machines[1], append([]string{"plugins", "verify", "-job", "job"}, args...)...)
	}
	status, out, errs := verify()
	for i := range 3 {
		if want := fmt.Sprintf("site alpha, host 10.77.0.%d: own: %s/impi-transport-own is the file that the job file trusts", 1+i, dirs[i]); status != statusOK || strings.Count(out, want) != 1 || strings.Count(out, "\n") != 3 {
			t.Errorf("status %d, or it does not say %q:\n%s%s", status, want, out, errs)
		}
	}
	put(dirs[2], append(program, '#'))
	status, out, errs = verify()
	if status != statusBad || strings.Count(out, "trusts") != 2 || strings.Count(errs, "site alpha, host 10.77.0.3: own: ") != 1 || !strings.Contains(errs, "the job file trusts") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	status, out, errs = verify("-json")
	var got struct{ Nodes []verified }
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != statusBad || len(got.Nodes) != 3 || got.Nodes[2].Files[0].Error == "" || got.Nodes[0].Files[0].Error != "" {
		t.Errorf("status %d, %v\n%s%s", status, err, out, errs)
	}
	for _, n := range nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	ends(nodes)
}

// TestMachineThatNeverComes is named by its address when the start is over, with what to do.
func TestMachineThatNeverComes(t *testing.T) {
	for limit := 4; ; limit *= 4 { // as long as this machine is too slow to get so far
		file, machines := machineJob(t, fmt.Sprintf(`limits { start = "%ds" }`, limit))
		nodes := startOn(t, file, "meet", machines[:5])
		statuses := ends(nodes)
		if limit < 300 && strings.Contains(nodes[3].err.String(), "MPI Init of") {
			continue
		}
		want := fmt.Sprintf("site beta: %v passed and hosts of the site are missing: 10.77.0.6; nothing came to 10.77.0.4:7802 from 10.77.0.6: run impi-node there with the same file", time.Duration(limit)*time.Second)
		for i, s := range statuses {
			if s == 0 || !strings.Contains(nodes[i].err.String(), want) {
				t.Errorf("machine %d: status %d, or it does not say %q", i, s, want)
			}
		}
		return
	}
}

// TestMachinesWithTwoNetworks: the file knows the machines by their addresses on one network, and
// links use those on the other.
func TestMachinesWithTwoNetworks(t *testing.T) {
	file, machines := machineJob(t, "")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(network string) {
		text := bytes.ReplaceAll(b, []byte("  procs  = 2\n"), []byte("  procs  = 2\n  network = \""+network+"\"\n"))
		if err := os.WriteFile(file, append(text, "log { level = \"debug\" }\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range machines {
		if out, err := m.Command(t.Context(), "ip", "address", "add", fmt.Sprintf("10.78.0.%d/16", i+1), "dev", "eth0").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	write("10.78.0.0/16")
	nodes := startOn(t, file, "block", machines)
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] ready", rank))
	}
	for tries := 0; ; tries++ { // a node may hear of its job a moment later than its procs
		status, out, errs := nodes[1].command(t, machines[1], "links", "-json", "-deadline", "60s")
		hosts := strings.ReplaceAll(out, "10.77.0.1:7800", "the server")
		if status == statusOK && !strings.Contains(hosts, "10.77.0.") && strings.Contains(out, `"host": "10.78.0.3"`) {
			break
		}
		if tries == 100 {
			t.Errorf("links do not name the hosts by the addresses that are used: status %d\n%s%s", status, out, errs)
			break
		}
	}
	for _, n := range nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	ends(nodes)
	nodes = startOn(t, file, "meet", machines)
	for i, s := range ends(nodes) {
		log := nodes[i/3*3].err.String()
		if want := fmt.Sprintf("channels=10.78.0.%d:", i+1); s != 0 || !strings.Contains(log, want) || strings.Contains(log, "channels=10.77") {
			t.Errorf("machine %d: status %d, or the log of its site has no %q", i, s, want)
		}
	}
}

// TestMachinesWithAFirewallBetween: a host that cannot connect to another one, of its own site or
// of another one, names both and says what to do, long before the limit of the start.
func TestMachinesWithAFirewallBetween(t *testing.T) {
	t.Parallel()
	const ports, range_ = "write port = N in their host blocks", "write port_range = \"FIRST-LAST\" in the config of transport "
	for name, c := range map[string]struct {
		more, proto, what string
		to                int // the machine that 10.77.0.6 cannot reach
		remedy            string
	}{
		"plain":                    {"", "tcp", "prohibit", 3, ports},
		"certificates":             {withCertificates, "tcp", "prohibit", 3, range_ + `"tcp"`},
		"plain, dropped":           {"", "tcp", "blackhole", 3, ports},
		"certificates, dropped":    {withCertificates, "tcp", "blackhole", 3, range_ + `"tcp"`},
		"quic, dropped":            {overQUIC, "udp", "blackhole", 3, range_ + `"quic"`},
		"both, dropped":            {withCertificates + strings.Replace(overQUIC, `["quic"]`, `["quic", "tcp"]`, 1), "udp tcp", "blackhole", 3, range_ + `"tcp"`},
		"of another site":          {"", "tcp", "prohibit", 1, ports},
		"of another, dropped":      {"", "tcp", "blackhole", 1, ports},
		"of another, over quic":    {overQUIC, "udp", "blackhole", 1, range_ + `"quic"`},
		"of another, certificates": {withCertificates, "tcp", "blackhole", 1, range_ + `"tcp"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, machines := machineJob(t, c.more+"limits { start = \"5m\" }\n")
			address := machines[c.to].Address
			for _, proto := range strings.Fields(c.proto) {
				firewall := []string{"ip", "rule", "add", "to", address, "ipproto", proto, "dport", "8000-65534", c.what}
				from := machines[5]
				if c.what == "blackhole" { // of the answers: what is sent there would be refused here
					firewall[4], firewall[7], from = "10.77.0.6", "sport", machines[c.to]
				}
				out, err := from.Command(t.Context(), firewall[0], firewall[1:]...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			ca := pkitest.Authority(t)
			var nodes []*machineNode
			for _, m := range machines {
				nodes = append(nodes, startNode(t, m, "meet", "CERTS="+certificatesOn(t, ca, time.Now()), "-config", file))
			}
			for i, s := range ends(nodes) {
				if s == 0 {
					t.Errorf("machine %d: status 0", i)
				}
			}
			whose := "Hosts of a site connect to each other at "
			if c.to < 3 {
				whose = "Hosts of site beta (client 1) connect to those of site alpha (client 0) at "
			}
			for _, head := range []int{0, 3} {
				log := nodes[head].err.String()
				for _, want := range []string{fmt.Sprintf("host %d at %s:", c.to, address), " was not reached: from 10.77.0.6: ", whose, c.remedy} {
					if !strings.Contains(log, want) {
						t.Errorf("the head on machine %d does not say %q", head, want)
					}
				}
				what := ""
				switch {
				case head == 3 && c.to < 3:
					what = "no answer yet; the job ends if this lasts for 20s"
				case head == 3 && strings.Contains(c.proto, "udp"): // a handshake may be slow
					what = "no answer yet; the job ends after " + dynamic.DialsLimit.String() + " more"
				default:
					continue
				}
				wantLine(t, "the head of beta", log, "[WARN]", what, "host=10.77.0.6 ", "from=10.77.0.6 ", " at "+address+":", whose, strings.ReplaceAll(c.remedy, `"`, `\"`))
				if before, _, _ := strings.Cut(log, "was not reached: "); !strings.Contains(before, what) {
					t.Errorf("it says %q after the job's end", what)
				}
			}
			for _, head := range []int{0, 3} {
				log := nodes[head].err.String()
				if strings.Contains(log, "5m0s") {
					t.Errorf("the head on machine %d has waited for the limit of the start", head)
				}
			}
		})
	}
}
