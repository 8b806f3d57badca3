package calls

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/openimpi/impi/internal/campaign/inject"
	"github.com/openimpi/impi/internal/campaign/job"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

func TestMain(m *testing.M) {
	inject.Shim()
	os.Exit(m.Run())
}

// points are some of each kind of process and call, and those that have found something.
var points = []struct {
	kind, process, name string
	n                   int
	fault               inject.Fault
}{
	{"plugin", "ring 3", "sendto/socket", 3, "EINTR"}, // the bell of a ring
	{"plugin", "ring 2", "sendto/socket", 1, "ENOMEM"},
	{"tcp", "node 2", "clone", 4, "EAGAIN"},
	{"shm", "launcher 1", "openat", 13, "EMFILE"},
	{"shm", "ring 3", "mmap", 7, "ENOMEM"},
	{"plugin", "transport-chaos-tcp 1", "write/socket", 4, inject.Short},
	{"tcp", "node 1", "openat create", 1, "ENOSPC"},
	{"tcp", "node 1", "memfd_create", 1, "EMFILE"},
	{"shm", "transport 1", "socket", 2, "ENOMEM"},
	{"shm", "ring 1", "recvmsg/socket", 7, "ENOMEM"},
	// From here on in make soak.
	{"tcp", "node 2", "write/socket", 28, inject.Short},
	{"tcp", "launcher 1", "write/socket", 26, inject.Short},
	{"shm", "node 2", "recvmsg/socket", 12, "ENOMEM"},
	{"shm", "node 2", "recvfrom/socket", 54, "ECONNRESET"},
	{"tcp", "ring 3", "mmap", 4, "ENOMEM"},
	{"plugin", "node 2", "pread64/file", 579, "EIO"},
	{"tcp", "node 1", "pidfd_open", 1, "ENOMEM"},
	{"plugin", "transport-chaos-tcp 2", "fcntl dup", 25, "EMFILE"},
	{"shm", "transport 3", "sendmsg/socket", 5, "ECONNRESET"},
	{"shm", "launcher 1", "execve", 1, "ENOMEM"},
}

// TestFailedCalls: whichever call of a job fails, it succeeds or says why not, and nothing is left.
func TestFailedCalls(t *testing.T) {
	b := stand(t)
	made := 0
	for _, x := range points[:soak.Size(10, len(points))] {
		p := Point{Call: inject.Call{Process: x.process, Name: x.name, N: x.n}, Fault: x.fault}
		for _, k := range job.Kinds {
			if k.Name == x.kind {
				p.Kind = k
			}
		}
		r, err := Run(t.Context(), b, p)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		if wrong := r.Wrong(); wrong != "" {
			t.Errorf("%v: %s\n%s", p, wrong, r.Output)
		}
		if r.Reached {
			made++
		}
		t.Logf("%v: status %d after %v", p, r.Status, r.Took)
	}
	if made < 6 {
		t.Errorf("only %d of these calls are made", made)
	}
}

// stand has the programs of the jobs.
func stand(t *testing.T) *job.Workspace {
	t.Helper()
	if err := inject.Missing(); err != nil {
		skips.NotRun(t, err.Error(), "use Linux 5.19 or newer, on amd64 or arm64")
	}
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", "../../../cmd/impi-node", "../../../cmd/impi-transport-chaos", "../../../examples/ring").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := job.NewWorkspace(bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Points are in an order that is far from that of their names, and keep it.
func TestKeys(t *testing.T) {
	p := Point{Kind: job.Kinds[0], Call: inject.Call{Process: "node 1", Name: "openat"}, Fault: "EMFILE"}
	up, last := 0, uint64(0)
	for p.N = 1; p.N <= 1000; p.N++ {
		if p.Key() > last {
			up++
		}
		last = p.Key()
	}
	if up < 400 || up > 600 {
		t.Errorf("%d of 1000 points come after the one before", up)
	}
	if p.N = 17; fmt.Sprint(p) != "shm: node 1: openat 17: EMFILE" {
		t.Errorf("%v", p)
	}
}

func TestRole(t *testing.T) {
	for want, args := range map[string][]string{
		"launcher": {"/bin/impi-node", "-config", "job.hcl"}, "node": {"impi-node", "-config", "job.hcl", "-site", "a"},
		"transport": {"/bin/impi-node"}, "transport-chaos-tcp": {"/p/impi-transport-chaos-tcp"}, "ring": {"/bin/ring", "-rounds", "3"},
	} {
		if got := role(args); got != want {
			t.Errorf("%v is %s", args, got)
		}
	}
}
