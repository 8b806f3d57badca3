package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/skips"
)

var firstHCL = regexp.MustCompile("(?s)```hcl\n(.*?)```")

// Before a test goes to another folder.
var securityDocument, _ = filepath.Abs("../../docs/security.md")

// recipe makes what docs/security.md says in two minutes, in a new folder: the
// commands are those of the text, and so is the file, but for addresses and program.
func recipe(t *testing.T, change ...string) (dir string) {
	t.Helper()
	text, err := os.ReadFile(securityDocument)
	if err != nil {
		t.Fatal(err)
	}
	found := firstHCL.FindSubmatch(text)
	if found == nil {
		t.Fatal("docs/security.md has no job file")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\nimpi-node cert init -sites alpha,beta\n") {
		t.Fatal("the text has another command")
	}
	dir = t.TempDir()
	good(t, dir, "init", "-sites", "alpha,beta")
	job := strings.NewReplacer(append(change,
		"192.0.2.7:7800", "127.0.0.2:0", "192.0.2.7", "127.0.0.2", "198.51.100.20", "127.0.0.3", "./ring", self)...).Replace(string(found[1]))
	for name, content := range map[string]string{"job.hcl": job + patient, "job.key": " 4711\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The recipe of docs/security.md on one machine: as it stands the sites share memory,
// with quic alone they talk by that, and in neither case is a link plain TCP.
func TestSecurityDocument(t *testing.T) {
	for transport, change := range map[string][]string{"shm": nil, "quic": {`["shm", "unix", "quic"]`, `["quic"]`}} {
		job := filepath.Join(recipe(t, change...), "job.hcl")
		if status, out, errs := impiNode(t, "", "validate", job); status != 0 {
			t.Errorf("%s: validate: status %d, %s\n%s", transport, status, out, errs)
		}
		status, out, errs := impiNode(t, "meet", "-config", job, "-log-level", "debug")
		if status != 0 || strings.Count(out, "met\n") != 4 || !strings.Contains(errs, "transport="+transport+" data_plane") || strings.Contains(errs, "transport=tcp data_plane") {
			t.Errorf("%s: status %d, %s\n%s", transport, status, out, errs)
		}
	}
}

// apart runs the recipe's sites as on two machines: the second one's node is another
// user's, in a user namespace, and so cannot share memory or Unix sockets.
func apart(t *testing.T, dirs [2]string, log string) (statuses [2]int, out, errs [2]*bytes.Buffer) {
	t.Helper()
	var cmds [2]*exec.Cmd
	for i, site := range []string{"alpha", "beta"} {
		cmds[i], out[i], errs[i] = command(t, "meet", "-config", filepath.Join(dirs[i], "job.hcl"), "-site", site, "-log-level", log)
	}
	// Whoever is root sees all files as its own there, too.
	cmds[1].SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 4242, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 4242, HostID: os.Getgid(), Size: 1}},
	}
	if err := cmds[1].Start(); err != nil {
		skips.NotRun(t, "this system gives no user namespaces ("+err.Error()+")", "run as root, or sysctl kernel.unprivileged_userns_clone=1")
	}
	_ = cmds[0].Run()
	_ = cmds[1].Wait()
	for i, c := range cmds {
		statuses[i] = c.ProcessState.ExitCode()
	}
	return statuses, out, errs
}

// The same as on two machines: everything but startup goes by quic. When their
// certificates are of different CAs, nothing goes at all.
func TestSecurityDocumentOnTwoMachines(t *testing.T) {
	server, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	alpha := recipe(t, "192.0.2.7:7800", server.String())
	statuses, out, errs := apart(t, [2]string{alpha, alpha}, "debug")
	for i, e := range errs {
		if said := e.String(); statuses[i] != 0 || strings.Count(out[i].String(), "met\n") != 2 ||
			!strings.Contains(said, "transport=quic data_plane") || strings.Contains(said, "transport=tcp data_plane") {
			t.Errorf("site %d: status %d, %s\n%s", i, statuses[i], out[i], said)
		}
	}
	beta := recipe(t, "192.0.2.7:7800", server.String()) // another CA
	for _, dir := range []string{alpha, beta} {          // for the server, beta is a stranger, and alpha waits for the real one
		file := filepath.Join(dir, "job.hcl")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		short := strings.Replace(string(b), patient, "\nlimits { start = \"3s\" }\n", 1)
		if err := os.WriteFile(file, []byte(short), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	statuses, out, errs = apart(t, [2]string{alpha, beta}, "info")
	if statuses[0] == 0 || statuses[1] == 0 || strings.Contains(out[0].String()+out[1].String(), "met") {
		t.Errorf("certificates of two CAs: statuses %v\n%s\n%s", statuses, errs[0], errs[1])
	}
	for _, want := range []string{"certificate", "was not signed by the CA in"} { // it does not even get past the server
		if said := errs[1].String(); !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
}
