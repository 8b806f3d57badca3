package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// programApart is where impi-node, and the procs' program, are on machines that are apart.
// nodeApart is impi-node for who does not pass the environment of tests on.
const (
	programApart = "/tmp/impi-node"
	nodeApart    = "/tmp/node"
)

// machinesApart makes machines that share no files, each with a copy of impi-node.
func machinesApart(t *testing.T, count int) []*netns.Machine {
	t.Helper()
	machines := netns.New(t, count)
	setApart(t, machines)
	return machines
}

// setApart has machines share no files from now on, and puts a copy of impi-node on each.
func setApart(t *testing.T, machines []*netns.Machine) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		m.IsolateFiles()
		m.Put(programApart, program, 0o755)
		m.Put(nodeApart, []byte("#!/bin/sh\n"+asNode+"=1 exec "+programApart+` "$@"`+"\n"), 0o755)
	}
}

// startApart runs impi-node on a machine that is apart. Its run directory has the same path on all.
func startApart(t *testing.T, m *netns.Machine, mode string, args ...string) *machineNode {
	t.Helper()
	t.Setenv("TMPDIR", "/tmp")
	n := startNodeOf(t, programApart, m, mode, "XDG_RUNTIME_DIR=/run", args...)
	n.dir, n.apart = "/run", true
	return n
}

// jobApart is a job of two sites of three machines, of which some have the file and the key. launch
// is in the block of each site.
func jobApart(t *testing.T, launch string, has ...int) []*netns.Machine {
	t.Helper()
	machines := machinesApart(t, 6)
	for _, i := range has {
		machines[i].Put("/tmp/job.key", []byte("4242\n"), 0o600)
		machines[i].Put("/tmp/job.hcl", fmt.Appendf(nil, `job {
  embedded_server { listen = "10.77.0.1:7800" }
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
  hosts  = "10.77.0.[1-3]"
  procs  = 2
  %[1]s
}
site "beta" {
  client = 1
  hosts  = "10.77.0.[4-6]"
  procs  = 2
  %[1]s
}
%[2]s
program { command = [%[3]q] }
`, launch, patient, programApart), 0o600)
	}
	return machines
}

// TestMachinesThatShareNoFiles: nothing that hosts agree on is in a file that several of them see.
func TestMachinesThatShareNoFiles(t *testing.T) {
	machines := jobApart(t, "", 0, 1, 2, 3, 4, 5)
	nodes := make([]*machineNode, 6)
	for i, m := range machines {
		nodes[i] = startApart(t, m, "meet", "-config", "/tmp/job.hcl")
	}
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	for rank := range 12 {
		if !strings.Contains(nodes[rank/6*3].out.String(), fmt.Sprintf("[%d] met\n", rank)) {
			t.Errorf("the head of site %d has nothing of rank %d", rank/6, rank)
		}
	}
	for _, m := range machines {
		if left, err := filepath.Glob(m.Path("/dev/shm/*")); err != nil || len(left) > 0 {
			t.Errorf("%s has %q left, %v", m.Address, left, err)
		}
	}
}

// enterBy writes a command that runs another one on the machine whose address it gets first.
func enterBy(t *testing.T, machines []*netns.Machine) (command string) {
	t.Helper()
	quoted := func(words []string) (line string) {
		for _, w := range words {
			line += " '" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		return line
	}
	text := "#!/bin/sh\nhost=$1\nshift\ncase $host in\n"
	for _, m := range machines {
		// From the mounts of this test, as a machine does not see those of another.
		words := append([]string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", os.Getpid())}, m.Command(t.Context(), "").Args...)
		text += m.Address + ") exec" + quoted(words[:len(words)-1]) + " \"$@\" ;;\n"
	}
	command = filepath.Join(t.TempDir(), "enter")
	if err := os.WriteFile(command, []byte(text+"*) echo there is no machine $host >&2; exit 1 ;;\nesac\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return command
}

// TestLaunchByExec: one command at each head starts the nodes of its site's other machines by a
// command of the site's own, and nothing is on those but impi-node and the program.
func TestLaunchByExec(t *testing.T) {
	const enter = "/tmp/enter"
	machines := jobApart(t, fmt.Sprintf("launch \"exec\" { command = [%q, \"{host}\"] }", enter), 0, 3)
	script, err := os.ReadFile(enterBy(t, machines))
	if err != nil {
		t.Fatal(err)
	}
	heads := make([]*machineNode, 2)
	for i := range heads {
		machines[3*i].Put(enter, script, 0o700)
		heads[i] = startApart(t, machines[3*i], "meet", "-config", "/tmp/job.hcl", "-site", []string{"alpha", "beta"}[i])
	}
	wantBothSites(t, heads[0], heads[1], 6)
	for _, m := range machines {
		awaitEmpty(t, m)
	}
}

// TestLaunchByExecFails: who could not be reached, and what the command said, is in the message.
func TestLaunchByExecFails(t *testing.T) {
	machines := netns.New(t, 2)
	enter := enterBy(t, machines)
	dir, self, program := scriptOfNode(t)
	for name, c := range map[string]struct{ command, hosts, more, says string }{
		"no command": {`["/nowhere/kubectl", "exec", "-i", "{host}"]`, "10.77.0.[1-2]", "", "10.77.0.2: there is no /nowhere/kubectl on this machine, by which it would be reached: install it, or put its folder into PATH"},
		"silent":     {`["false", "{host}"]`, "10.77.0.[1-2]", "", "10.77.0.2: the command ended before anything ran there, and has printed nothing"},
		"no host":    {fmt.Sprintf(`[%q, "{host}"]`, enter), "10.77.0.[1-3]", "", "/enter exited with status 1 and has printed: there is no machine 10.77.0.3"},
		"no program": {fmt.Sprintf(`[%q, "{host}"]`, enter), "10.77.0.[1-2]", `program = "/nowhere/impi-node"`, "10.77.0.2: there is no program /nowhere/impi-node"},
		"other":      {fmt.Sprintf(`[%q, "{host}"]`, enter), "10.77.0.[1-2]", `program = "/bin/false"`, "host 10.77.0.2 is lost: its impi-node has ended with status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.more == "" {
				c.more = fmt.Sprintf("program = %q", program)
			}
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "")+".hcl")
			text := fmt.Sprintf(`job { embedded_server {} }
site "alpha" {
  client = 0
  hosts  = %q
  procs  = 2
  launch "exec" {
    command = %s
    %s
  }
}
%s
program { command = [%q] }
`, c.hosts, c.command, c.more, patient, self)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			nodes := startOn(t, file, "meet", machines[:1])
			if s := ends(nodes); s[0] == 0 || !strings.Contains(nodes[0].err.String(), c.says) {
				t.Errorf("status %d, and it does not say %q\n%s", s[0], c.says, nodes[0].err)
			}
		})
	}
}

// siteBySSH is a site on two machines that share no files, whose head starts the other host by ssh.
func siteBySSH(config string) string {
	return fmt.Sprintf(`site "alpha" {
  client = 0
  hosts  = "10.77.0.[1-2]"
  procs  = 2
  launch "ssh" {
    options = ["-F", %q]
    program = %q
  }
}
`, config, nodeApart)
}

// TestCertificateThatIsWrongBehindSSH: the head says which of the hosts that it has started has a
// certificate that is no good, why, and what to do.
func TestCertificateThatIsWrongBehindSSH(t *testing.T) {
	machines := machinesApart(t, 2)
	config := sshtest.StartOn(t, machines)
	ours, theirs := pkitest.Authority(t), pkitest.Authority(t)
	put := func(m *netns.Machine, dir string) {
		t.Helper()
		for _, name := range []string{"site.pem", "site.key", "ca.pem"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			m.Put("/tmp/"+name, b, 0o600)
		}
	}
	put(machines[0], certificatesOn(t, ours, time.Now()))
	machines[0].Put("/tmp/job.hcl", fmt.Appendf(nil, `job { embedded_server {} }
%s%s
limits { start = "10h" }
program { command = [%q] }
`, siteBySSH(config), strings.ReplaceAll(withCertificates, "${env.CERTS}", "/tmp"), programApart), 0o600)
	for _, c := range []struct {
		name       string
		make       func()
		says, then string
	}{
		{"none", func() {}, "there is no file /tmp/site.pem", "correct the name, or make the file with: impi-node cert"},
		{"expired", func() { put(machines[1], certificatesOn(t, ours, time.Now().Add(-2*time.Hour))) }, `the certificate of "alpha" expired on `, "make a new one with: impi-node cert issue"},
		{"foreign", func() { put(machines[1], certificatesOn(t, theirs, time.Now())) }, `the certificate of "alpha" was not signed by the CA`, "impi-node cert issue makes a new one"},
		{"open to all", func() {
			put(machines[1], certificatesOn(t, ours, time.Now()))
			if err := os.Chmod(machines[1].Path("/tmp/site.key"), 0o644); err != nil { //nolint:gosec // that is the fault
				t.Fatal(err)
			}
		}, "others than its owner can read /tmp/site.key", "chmod 600 /tmp/site.key"},
		{"good", func() { put(machines[1], certificatesOn(t, ours, time.Now())) }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.make()
			n := startApart(t, machines[0], "meet", "-config", "/tmp/job.hcl")
			s, log := ends([]*machineNode{n})[0], n.err.String()
			if c.says == "" {
				if s != 0 || strings.Count(n.out.String(), "met\n") != 4 {
					t.Errorf("status %d", s)
				}
			} else if s != statusUsage || !strings.Contains(log, "impi-node: site alpha: host 10.77.0.2: ") || !strings.Contains(log, c.says) || !strings.Contains(log, c.then) || strings.Contains(log, "10h0m0s") {
				t.Errorf("status %d, or it does not name the host and say %q and %q", s, c.says, c.then)
			}
			awaitEmpty(t, machines[1])
		})
	}
}
