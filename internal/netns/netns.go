// Package netns makes machines for tests: network namespaces with addresses of their own on a
// common network. Processes in different ones reach each other by IP only: impi's shared-memory and
// Unix-socket transports compare the network namespace.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/openimpi/impi/internal/skips"
)

// TB is the part of testing.TB that is needed here.
type TB interface {
	skips.TB
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

// Machine is a network namespace in which programs run as on a machine of their own.
type Machine struct {
	Name    string // of the namespace, for ip netns; and the host name for programs run by Command
	Address string // in the common network
	names   string // the file by which its namespace of host names is entered
	root    string // folder of its own folders; empty: it shares all with this computer
	t       TB
}

var made atomic.Int32

// New makes machines with the addresses 10.77.0.1, 10.77.0.2 and so on, which are removed when the
// test is over. Tests may do so at the same time: their networks are separate. Without the rights
// for it the test is skipped.
func New(t TB, machines int) []*Machine {
	t.Helper()
	list := NewUnconnected(t, machines)
	if len(list) == 0 {
		return nil
	}
	wire := fmt.Sprintf("impi%d-%d-wire", os.Getpid(), made.Add(1))
	ip(t, "netns", "add", wire)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", wire).Run() })
	ip(t, "-n", wire, "link", "add", "wire", "type", "bridge")
	ip(t, "-n", wire, "link", "set", "wire", "up")
	for i, m := range list {
		m.Address = fmt.Sprintf("10.77.%d.%d", (i+1)/256, (i+1)%256)
		ip(t, "-n", m.Name, "link", "add", "eth0", "type", "veth", "peer", "name", fmt.Sprintf("p%d", i), "netns", wire)
		ip(t, "-n", wire, "link", "set", fmt.Sprintf("p%d", i), "master", "wire", "up")
		ip(t, "-n", m.Name, "address", "add", m.Address+"/16", "dev", "eth0")
		ip(t, "-n", m.Name, "link", "set", "eth0", "up")
	}
	return list
}

// NewUnconnected makes machines as New does, but without a network: each has only its loopback, and
// the caller joins them and sets their addresses.
func NewUnconnected(t TB, machines int) []*Machine {
	t.Helper()
	prefix := fmt.Sprintf("impi%d-%d", os.Getpid(), made.Add(1))
	first := prefix + "-0"
	if out, err := exec.Command("ip", "netns", "add", first).CombinedOutput(); err != nil {
		skips.NotRun(t, "network namespaces cannot be made: "+strings.TrimSpace(string(out)+" "+err.Error()), "run the tests as root, with iproute2 installed")
		return nil
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", first).Run() })
	dir, err := os.MkdirTemp("", "machines")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	list := make([]*Machine, machines)
	for i := range list {
		m := &Machine{Name: fmt.Sprintf("%s-%d", prefix, i), t: t}
		if m.Name != first {
			ip(t, "netns", "add", m.Name)
		}
		t.Cleanup(func() { m.end() })
		m.name(dir)
		ip(t, "-n", m.Name, "link", "set", "lo", "up")
		list[i] = m
	}
	return list
}

func ip(t TB, args ...string) {
	t.Helper()
	do(t, "ip", args...)
}

func do(t TB, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

// name gives the machine a name of its own, by which other launchers tell machines apart.
func (m *Machine) name(dir string) {
	m.t.Helper()
	m.names = filepath.Join(dir, m.Name)
	if err := os.WriteFile(m.names, nil, 0o600); err != nil {
		m.t.Fatalf("%v", err)
	}
	do(m.t, "unshare", "--uts="+m.names, "hostname", m.Name)
}

func (m *Machine) end() {
	m.Crash()
	_ = exec.Command("ip", "netns", "del", m.Name).Run()
	_ = exec.Command("umount", m.names).Run()
}

// Command returns a command, not started yet, that runs name on the machine.
func (m *Machine) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{"--uts=" + m.names, "ip", "netns", "exec", m.Name}
	if m.root != "" {
		enter = append(enter, "sh", "-c", mountOwn, m.root) // ip netns exec has made a mount namespace
	}
	return exec.CommandContext(ctx, "nsenter", append(append(enter, name), args...)...)
}

// own are the folders that a machine with file systems of its own has for itself. /tmp is the last
// one that is covered, since the others may be below it.
var own = []string{"/dev/shm", "/run", "/var/tmp", "/tmp"}

// mountOwn covers the own folders by those below $0, makes everything else read-only, except for
// the kernel's file systems, and runs its arguments.
var mountOwn = `set -e
for f in ` + strings.Join(own, " ") + `; do mount --bind "$0$f" $f; done
mount -o remount,bind,ro /
exec "$@"`

// IsolateFiles gives the machine files of its own, for programs that are started there from now on:
// /tmp, /var/tmp, /run and /dev/shm, which begin empty. Programs can write to no others, so that
// machines with isolated files share none.
func (m *Machine) IsolateFiles() {
	m.t.Helper()
	root := m.names + ".root"
	for _, f := range own {
		if err := os.MkdirAll(root+f, 0o700); err != nil {
			m.t.Fatalf("%v", err)
		}
		if err := os.Chmod(root+f, 0o777|os.ModeSticky); err != nil {
			m.t.Fatalf("%v", err)
		}
	}
	m.root = root
}

// Copy copies the files of a folder of this computer, without its subfolders, to the same path on
// the machine. A machine whose files are not isolated has them already.
func (m *Machine) Copy(dir string) {
	m.t.Helper()
	if m.root == "" {
		return
	}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		info, e1 := f.Info()
		if e1 == nil && !info.Mode().IsRegular() {
			continue
		}
		content, e2 := os.ReadFile(path)
		if err = errors.Join(e1, e2); err != nil {
			break
		}
		m.Put(path, content, info.Mode())
	}
	if err != nil {
		m.t.Fatalf("%v", err)
	}
}

// Path returns the path on this computer of a file in a folder that is the machine's own.
func (m *Machine) Path(file string) string { return m.root + file }

// Put writes a file on the machine, in a folder that is its own.
func (m *Machine) Put(file string, content []byte, mode os.FileMode) {
	m.t.Helper()
	path := m.Path(file)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = errors.Join(os.WriteFile(path, content, mode), os.Chmod(path, mode)) // WriteFile keeps an old mode
	}
	if err != nil {
		m.t.Fatalf("%v", err)
	}
}

// Crash kills all processes of the machine at once.
func (m *Machine) Crash() {
	for range 100 { // some may be started meanwhile
		if m.Idle() {
			return
		}
		_ = exec.Command("kill", append([]string{"-9"}, m.pids()...)...).Run()
	}
}

func (m *Machine) pids() []string {
	out, _ := exec.Command("ip", "netns", "pids", m.Name).Output()
	return strings.Fields(string(out))
}

// Commands returns the command lines of the machine's processes that run a program.
func (m *Machine) Commands(program string) (list []string) {
	for _, pid := range m.pids() {
		if at, err := os.Readlink("/proc/" + pid + "/exe"); err == nil && at == program {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			list = append(list, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

// Idle reports whether nothing runs on the machine.
func (m *Machine) Idle() bool { return len(m.pids()) == 0 }

// Cut disconnects the machine from the network, as if its cable were pulled.
func (m *Machine) Cut() {
	m.t.Helper()
	ip(m.t, "-n", m.Name, "link", "set", "eth0", "down")
}

// Forbid makes the machine's connections to one address and TCP port fail at once, like a firewall
// that rejects them.
func (m *Machine) Forbid(address string, port int) {
	m.t.Helper()
	ip(m.t, "-n", m.Name, "rule", "add", "to", address, "ipproto", "tcp", "dport", fmt.Sprint(port), "prohibit")
}
