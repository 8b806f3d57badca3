package quic_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
)

const inNamespace = "IMPI_TEST_NAMESPACE"

// The local address of a connection disappears in the middle of a transfer, in a network
// namespace of the test's own. Nothing is lost.
func TestOwnAddressGoes(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		again(t)
		return
	}
	address(t, "lo", "127.0.0.1")
	address(t, "lo:1", "10.9.0.1")
	alpha, beta := two(t, map[string]any{"keepalive": 1.0})
	ln := listen(t, alpha, "127.0.0.1")
	a, err := beta.Dial(t.Context(), transports.DialSpec{Address: ln.Address(), From: "10.9.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	transfer(t, a, b, 8<<20, 2, func(int) { flags(t, "lo:1", 0) })
	transfer(t, b, a, 1<<20, 1, func(int) {})
	if quic.Moves(beta) == 0 {
		t.Error("the connection has not moved: was the address in use?")
	}
}

// again runs the test that calls it once more, in a network namespace of its own.
func again(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil:
		skips.NotRun(t, fmt.Sprint("there are no namespaces: ", err), "be root, or allow user namespaces")
	case strings.Contains(string(out), "SKIP"):
		skips.NotRun(t, "interfaces cannot be changed in a namespace", "be root")
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

// address gives an interface an address and switches it on.
func address(t *testing.T, name, ip string) {
	t.Helper()
	r := request(t, name)
	if err := r.SetInet4Addr(parse4(t, ip)); err != nil {
		t.Fatal(err)
	}
	ioctl(t, unix.SIOCSIFADDR, r)
	flags(t, name, unix.IFF_UP)
}

// flags switches an interface on or off. An alias that is off has no address.
func flags(t *testing.T, name string, up uint16) {
	t.Helper()
	r := request(t, name)
	r.SetUint16(up)
	ioctl(t, unix.SIOCSIFFLAGS, r)
}

func request(t *testing.T, name string) *unix.Ifreq {
	t.Helper()
	r, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ioctl(t *testing.T, call uint, r *unix.Ifreq) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.IoctlIfreq(fd, call, r); err != nil {
		skips.NotRun(t, fmt.Sprintf("interface %s cannot be changed: %v", r.Name(), err), "be root")
	}
}

func parse4(t *testing.T, ip string) []byte {
	t.Helper()
	a := netip.MustParseAddr(ip).As4()
	return a[:]
}
