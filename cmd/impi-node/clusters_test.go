package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/manifest/manifesttest"
	"github.com/openimpi/impi/internal/launch/pmix/pmixtest"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

var fenced = regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```")

// clustersDocument is docs/clusters.md, found before a test goes to another folder.
var clustersDocument, _ = filepath.Abs("../../docs/clusters.md")

// clusterRecipe puts a job file of docs/clusters.md and its key into a new folder, with impi-node
// and impi-server, and gives the commands that the text has for that file. What stands in change is
// another thing on this machine.
func clusterRecipe(t *testing.T, name string, change ...string) (dir string, commands []string) {
	t.Helper()
	skips.Short(t)
	text, err := os.ReadFile(clustersDocument)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", ".", "../impi-server").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	replace := strings.NewReplacer(append(change, `"./ring"`, fmt.Sprintf("%q", self), `"/app/ring"`, fmt.Sprintf("%q", self))...).Replace
	job := ""
	for _, block := range fenced.FindAllSubmatch(text, -1) {
		body := string(block[2])
		switch {
		case strings.HasPrefix(body, "# "+name+"\n"):
			job = replace(body)
		case len(block[1]) == 0 && strings.Contains(body, name):
			for line := range strings.Lines(body) {
				line, _, _ = strings.Cut(line, " #")
				commands = append(commands, replace(strings.TrimSpace(line)))
			}
		case strings.HasPrefix(body, "(umask"):
			cmd := exec.CommandContext(t.Context(), "sh", "-c", body)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	if job == "" || len(commands) == 0 {
		t.Fatalf("docs/clusters.md has no %s, or no commands for it", name)
	}
	if !strings.Contains(job, "limits {") {
		job += patient
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, commands
}

// runLine starts a command of a text in its folder, by a shell.
func runLine(t *testing.T, dir string, wrap func(args ...string) *exec.Cmd, command string, env ...string) *machineNode {
	t.Helper()
	n := &machineNode{cmd: wrap("sh", "-c", "exec "+command)}
	n.cmd.Dir = dir
	n.cmd.Env = append(append(os.Environ(), asProgram+"=meet", "PATH="+dir+":"+os.Getenv("PATH")), env...)
	n.start(t, command)
	return n
}

// wantBothSites waits for the nodes of two heads, and wants each to have what the ranks of its site
// have written.
func wantBothSites(t *testing.T, alpha, beta *machineNode, procs int) {
	t.Helper()
	for i, s := range ends([]*machineNode{alpha, beta}) {
		if s != 0 {
			t.Errorf("site %d: status %d", i, s)
		}
	}
	for rank := range 2 * procs {
		if head := []*machineNode{alpha, beta}[rank/procs]; !strings.Contains(head.out.String(), fmt.Sprintf("[%d] met\n", rank)) {
			t.Errorf("there is nothing of rank %d", rank)
		}
	}
}

// serverAddress is one of this machine on which no other test process has a server.
func serverAddress() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 100+pid>>16, pid>>8&255, pid&255)
}

// TestClustersBySlurm runs the commands for Slurm as they are written: two allocations of one
// Slurm.
func TestClustersBySlurm(t *testing.T) {
	c := slurmtest.Start(t, 4)
	address := serverAddress()
	dir, commands := clusterRecipe(t, "slurm.hcl", "192.0.2.9", address)
	here := func(args ...string) *exec.Cmd { return exec.CommandContext(t.Context(), args[0], args[1:]...) }
	if len(commands) != 3 {
		t.Fatalf("%q", commands)
	}
	server := runLine(t, dir, here, commands[0])
	server.awaits(t, server.err, "waiting for clients: clients=2 address="+address+":7800")
	wantBothSites(t, runLine(t, dir, here, commands[1], c.Env()...), runLine(t, dir, here, commands[2], c.Env()...), 4)
	if s := ends([]*machineNode{server}); s[0] != 0 {
		t.Errorf("the server has status %d", s[0])
	}
}

// TestScancelAtOneCluster: the job ends at both.
func TestScancelAtOneCluster(t *testing.T) {
	c := slurmtest.Start(t, 4)
	address := serverAddress()
	dir, commands := clusterRecipe(t, "slurm.hcl", "192.0.2.9", address)
	here := func(args ...string) *exec.Cmd { return exec.CommandContext(t.Context(), args[0], args[1:]...) }
	env := append(c.Env(), asProgram+"=block")
	server := runLine(t, dir, here, commands[0])
	server.awaits(t, server.err, "waiting for clients: clients=2 address="+address+":7800")
	named := strings.Replace(commands[1], "salloc", "salloc --job-name=first", 1)
	alpha, beta := runLine(t, dir, here, named, env...), runLine(t, dir, here, commands[2], env...)
	for rank := range 8 {
		n := []*machineNode{alpha, beta}[rank/4]
		n.awaits(t, n.out, fmt.Sprintf("[%d] ready", rank))
	}
	c.Run("scancel", "--name=first")
	if s := ends([]*machineNode{alpha, beta, server}); s[0] == 0 || s[1] != ending.StatusRemote || s[2] == 0 {
		t.Errorf("statuses %d of the sites and the server, want one of a failure, %d and one of a failure", s, ending.StatusRemote)
	}
}

// TestClustersBySSH runs the commands for ssh as they are written, on six machines.
func TestClustersBySSH(t *testing.T) {
	machines := netns.New(t, 6)
	config := sshtest.StartOn(t, machines)
	dir, commands := clusterRecipe(t, "ssh.hcl")
	if err := os.WriteFile(dir+"/ssh", []byte(fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", skips.ProgramOf(t, "ssh", "openssh-client"), config)), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	on := func(m *netns.Machine) func(args ...string) *exec.Cmd {
		return func(args ...string) *exec.Cmd { return m.Command(t.Context(), args[0], args[1:]...) }
	}
	if len(commands) != 2 {
		t.Fatalf("%q", commands)
	}
	wantBothSites(t, runLine(t, dir, on(machines[0]), commands[0]), runLine(t, dir, on(machines[3]), commands[1]), 6)
}

// TestClusterByMpirun runs the command for Open MPI as it is written, on three machines that share
// no files.
func TestClusterByMpirun(t *testing.T) {
	skips.Short(t)
	mpirun, ssh := skips.ProgramOf(t, "mpirun.openmpi", "openmpi-bin"), skips.ProgramOf(t, "ssh", "openssh-client")
	text, err := os.ReadFile(clustersDocument)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile("(?m)^mpirun -host .* \\./ring$").FindAllString(string(text), -1)
	if len(line) != 1 {
		t.Fatalf("docs/clusters.md has the commands %q", line)
	}
	const installed = "/usr/local/bin/impi-node"
	if !strings.Contains(line[0], installed) {
		t.Fatalf("%s does not have %s", line[0], installed)
	}
	machines := machinesApart(t, 3)
	config := sshtest.StartOn(t, machines)
	for _, m := range machines {
		m.Put("/tmp/ring", []byte("#!/bin/sh\n"+asProgram+"=managed exec "+programApart+"\n"), 0o755)
	}
	machines[0].Put("/tmp/mpirun", fmt.Appendf(nil, "#!/bin/sh\nexec %s \"$@\"\n", mpirun), 0o755) // another MPI may have this name
	machines[0].Put("/tmp/ssh", fmt.Appendf(nil, "#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, config), 0o755)
	cmd := machines[0].Command(t.Context(), "sh", "-c", "cd /tmp && PATH=/tmp:$PATH exec "+strings.Replace(line[0], installed, nodeApart, 1))
	cmd.Env = append(os.Environ(), pmixtest.AsRoot...)
	out, err := cmd.CombinedOutput()
	skipWithoutCgo(t, string(out))
	wantRanks(t, string(out), 6, noProgram)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestClustersOfPods runs the manifests that the commands for Kubernetes write, with the key put in
// by hand, on six machines and with a name server that answers late.
func TestClustersOfPods(t *testing.T) {
	checker := manifesttest.Checker(t, manifestCheck)
	machines := netns.New(t, 6)
	serveNames(t, machines[0], "10.77.0.1:5300")
	dir, commands := clusterRecipe(t, "pods.hcl", `"/app/ring"`, `"/app/ring"`)
	key, err := os.ReadFile(filepath.Join(dir, "job.key"))
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*machineNode
	for i, site := range []string{"alpha", "beta"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "cd "+dir+" && PATH=.:$PATH && "+commands[i]+" && cat "+site+".yaml").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", commands[i], err, out)
		}
		manifest := strings.Replace(string(out), `"put what is in job.key here"`, fmt.Sprintf("%q", key), 1)
		for _, p := range startKubelet(t, checker, manifest, "meet", machines[3*i:3*i+3]).pods {
			nodes = append(nodes, p.start(t))
		}
	}
	wantBothSites(t, nodes[0], nodes[3], 6)
	ends(nodes)
}

// TestClustersOfAllocations runs the file for Nomad as its manifests start it, in network
// namespaces with the variable of an allocation's index and a name server that answers late.
func TestClustersOfAllocations(t *testing.T) {
	machines := netns.New(t, 6)
	t.Setenv(envDNS, "10.77.0.1:5300")
	serveNames(t, machines[0], "10.77.0.1:5300")
	dir, commands := clusterRecipe(t, "nomad.hcl")
	for _, command := range commands[:2] {
		text, err := exec.CommandContext(t.Context(), "sh", "-c", "cd "+dir+" && PATH=.:$PATH && "+command+" && cat *.json; rm -f *.json").CombinedOutput()
		if err != nil || !strings.Contains(string(text), `"Count": 3,`) {
			t.Errorf("%s: %v\n%s", command, err, text)
		}
	}
	nodes := make([]*machineNode, 6)
	for i := range 6 {
		nodes[i] = startNode(t, machines[i], "meet", fmt.Sprintf("NOMAD_ALLOC_INDEX=%d", i%3), "-config", filepath.Join(dir, "nomad.hcl"), "-site", []string{"alpha", "beta"}[i/3])
	}
	wantBothSites(t, nodes[0], nodes[3], 6)
	ends(nodes)
}
