package node

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/skips"
)

// inNamespace is set in a test that runs in a network of its own.
const inNamespace = "IMPI_TEST_NAMESPACE"

// Two sites lose the network between them, while their procs wait or send: each says of
// whom nothing was heard, and for how long.
func TestNetworkGoesDown(t *testing.T) {
	for _, c := range []struct{ name, mode string }{{"idle", "linked"}, {"busy", "chatter"}} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv(inNamespace) == "" {
				apart(t)
				return
			}
			switchLoopback(t, unix.IFF_UP)
			job := route(testJob(c.mode, 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true})
			job.Limits.Silence = 2 * time.Second
			all := start(t, job)
			for i, r := range all {
				r.out.Line(t, fmt.Sprintf("[%d] sum ", i))
			}
			switchLoopback(t, 0)
			for i, f := range end(all) {
				if f == nil || !strings.Contains(f.Text, "nothing was heard from ") || !strings.Contains(f.Text, " for 2s") ||
					strings.Contains(f.Text, " is lost: its connection ") || f.Status != ending.StatusRemote {
					t.Errorf("site %d: %+v", i, f)
				}
			}
		})
	}
}

// apart runs the test that calls it in a network namespace of its own.
func apart(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+strings.Join(parts, "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil:
		skips.NotRun(t, "this system gives no network namespaces ("+err.Error()+")", "run as root, or sysctl kernel.unprivileged_userns_clone=1")
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

// switchLoopback switches the only interface of a namespace on or off.
func switchLoopback(t *testing.T, up uint16) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	r.SetUint16(up)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		t.Fatal(err)
	}
}
