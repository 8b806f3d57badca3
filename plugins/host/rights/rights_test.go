package rights

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
)

// envTry makes this test binary, run as a plugin, do one of tries.
const envTry = "IMPI_TEST_TRY"

func TestMain(m *testing.M) {
	if try := tries[os.Getenv(envTry)]; try != nil {
		try()
		return
	}
	os.Exit(m.Run())
}

// plugin is what a node wishes for its plugins.
var plugin = Restrictions{Writable: []string{os.TempDir(), "/dev", "/proc"}}

// tries write a line for each thing that they try, and what has become of it.
var tries = map[string]func(){"calls": tryCalls, "deeds": tryDeeds, "needs": tryNeeds, "namespace": tryNamespace, "no namespaces": tryWithout}

// start runs a try as a plugin is run, with a wish or, for nil, with all rights.
func start(w *Restrictions, try string, env ...string) (string, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), envTry+"="+try), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	started := make(chan error)
	go onThread(func() {
		if w == nil {
			started <- cmd.Start()
			return
		}
		w.Prepare(cmd.SysProcAttr)
		_, err := Restrict(*w)
		if err == nil {
			err = w.Explain(cmd.Start())
		}
		started <- err
	})
	if err := <-started; err != nil {
		return "", err
	}
	_ = cmd.Wait() // what it says counts
	return out.String(), nil
}

// onThread runs f on a thread that ends with it and is not the first one.
func onThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		done := make(chan struct{})
		go func() { defer close(done); onThread(f) }()
		<-done
		return
	}
	f()
}

func tried(t *testing.T, w *Restrictions, try string, env ...string) map[string]string {
	t.Helper()
	out, err := start(w, try, env...)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(out) {
		name, result, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("%s: %q", try, out)
		}
		found[name] = result
	}
	return found
}

func hasFilter(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		skips.NotRun(t, "a filter of system calls for "+runtime.GOARCH, "run it on amd64 or arm64")
	}
}

func report(name string, err error) {
	result := "done"
	if err != nil {
		result = err.Error()
	}
	fmt.Printf("%s: %s\n", name, result)
}

func errnoOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// tryCalls makes all calls that are denied, with arguments with which none of them does anything.
func tryCalls() {
	all := maps.Clone(denied)
	maps.Copy(all, deniedHere)
	delete(all, "vhangup") // it has no arguments
	for name, number := range all {
		const bad = ^uintptr(0)
		_, _, errno := unix.RawSyscall6(number, bad, bad, bad, bad, bad, bad)
		report(name, errnoOf(errno))
	}
	for i, command := range typing {
		_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, ^uintptr(0), uintptr(command), 0)
		report(fmt.Sprint("ioctl ", i), errnoOf(errno))
	}
}

// Every call that is denied fails with EPERM, and hardly one does so in a process with all rights.
func TestDeniedCalls(t *testing.T) {
	hasFilter(t)
	eperm, free := unix.EPERM.Error(), 0
	for name, result := range tried(t, &plugin, "calls") {
		if result != eperm {
			t.Errorf("%s: %s", name, result)
		}
	}
	open := tried(t, nil, "calls")
	for _, result := range open {
		if result != eperm {
			free++
		}
	}
	if len(open) < 60 || free < 30 {
		t.Errorf("of %d calls only %d are not refused to a process with all rights: %v", len(open), free, open)
	}
}

// tryDeeds does what any user's process may and plugins may not.
func tryDeeds() {
	traced := exec.Command("/bin/true")
	traced.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	err := traced.Start()
	if err == nil {
		_ = traced.Process.Kill()
	}
	report("trace", err)
	from, to := []byte("secret"), make([]byte, 6)
	local := []unix.Iovec{{Base: &to[0], Len: 6}}
	_, err = unix.ProcessVMReadv(unix.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from[0])), Len: 6}}, 0)
	report("read memory", err)
	_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
	report("make keys", err)
	_, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, 0x0040000, 0, 0) // ADDR_NO_RANDOMIZE
	report("turn off randomness", errnoOf(errno))
	f, err := os.CreateTemp("", "")
	if err != nil {
		report("a file", err)
		return
	}
	defer os.Remove(f.Name())
	report("give away", f.Chown(os.Getuid(), os.Getgid()))
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	report("make a namespace", cmd.Run())
	cmd = exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET}
	report("make namespaces", cmd.Run())
	cmd = exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}
	report("leave a namespace", cmd.Run())
	var params [120]byte // struct io_uring_params
	_, _, errno = unix.RawSyscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	report("use io_uring", errnoOf(errno))
	other, err := strconv.Atoi(os.Getenv(envOther))
	if err != nil {
		report("find the other process", err)
		return
	}
	tryOther(other)
}

// envOther has the number of another process of this user, which is no child of the plugin's.
const envOther = "IMPI_TEST_OTHER"

// tryOther changes how another process runs.
func tryOther(pid int) {
	report("limit another's time", unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1, Max: 1}, nil))
	// Two limits of 0, at an address whose lower half, which a filter sees by itself, is 0.
	const at = 0x3300000000
	low, _, errno := unix.RawSyscall6(unix.SYS_MMAP, at, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if errno != 0 || low != at {
		report("have memory there", fmt.Errorf("%w: at %#x", errno, low))
		return
	}
	_, _, errno = unix.RawSyscall6(unix.SYS_PRLIMIT64, uintptr(pid), unix.RLIMIT_NOFILE, low, 0, 0, 0)
	report("limit another's files", errnoOf(errno))
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	report("slow another down", errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, pid, 19)))
	report("slow a group down", unix.Setpriority(unix.PRIO_PGRP, 0, 20-nice)) // to what it has: the system call turns nice values round
	_, _, errno = unix.RawSyscall(unix.SYS_IOPRIO_SET, ioprioProcess, uintptr(pid), idle)
	report("have another wait for disks", errnoOf(errno))
	report("schedule another", unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: 19}, 0))
}

const idle = 3 << 13 // IOPRIO_CLASS_IDLE

// other starts a process outside, and returns its number and what is known of its limits and
// priorities.
func other(t *testing.T) (pid int, state func() string) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid = cmd.Process.Pid
	return pid, func() string {
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		nice, err2 := unix.Getpriority(unix.PRIO_PROCESS, pid)
		disks, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_GET, ioprioProcess, uintptr(pid), 0)
		if err := errors.Join(err, err2, errnoOf(errno)); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(string(limits), nice, disks)
	}
}

// What works for any user does not for a plugin.
func TestDeeds(t *testing.T) {
	hasFilter(t)
	pid, state := other(t)
	victim := fmt.Sprint(envOther, "=", pid)
	before := state()
	confined := tried(t, &plugin, "deeds", victim)
	if after := state(); after != before {
		t.Errorf("a plugin has changed another process from\n%s\nto\n%s", before, after)
	}
	open := tried(t, nil, "deeds", victim)
	if state() == before {
		t.Error("nor can others change another process")
	}
	for name, result := range confined {
		want, ring := unix.EPERM, name == "use io_uring"
		if ring {
			want = unix.ENOSYS
		}
		if !strings.Contains(result, want.Error()) {
			t.Errorf("a plugin can %s: %s", name, result)
		}
		mayBeKept := ring || strings.Contains(name, "namespace") // by a kernel from its users
		if open[name] != "done" && !mayBeKept {
			t.Errorf("others cannot %s either: %s", name, open[name])
		}
	}
}

// tryNeeds does what plugins need.
func tryNeeds() {
	report("start programs", exec.Command("/bin/sh", "-c", "/bin/true").Run())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = ln.Close()
	}
	report("listen", err)
	_, err = unix.IoctlGetInt(0, unix.TIOCINQ)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
		err = nil // as the file says, and no filter
	}
	report("ask files", err)
	_, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
	report("ask for its personality", errnoOf(errno))
	_, _, errno = unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
	report("find no clone3", map[bool]error{false: errno}[errors.Is(errno, unix.ENOSYS)])
	_, _, errno = unix.RawSyscall(unix.SYS_IO_URING_REGISTER, ^uintptr(0), 0, 0)
	report("find no io_uring", map[bool]error{false: errno}[errors.Is(errno, unix.ENOSYS)])
	trySelf()
	report("have files of its thread", inThread(func() error { return unix.Unshare(unix.CLONE_FS | unix.CLONE_FILES) }))
	r, w, err := os.Pipe()
	if err == nil {
		_, err = w.WriteString("x")
		err = errors.Join(err, w.Close())
	}
	if err == nil {
		_, err = io.ReadAll(r)
	}
	report("pipes", err)
}

// trySelf changes how the process itself runs, as runtimes do, by the numbers that they use for it.
func trySelf() {
	var files unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	report("limit its files", errors.Join(err, unix.Prlimit(0, unix.RLIMIT_NOFILE, &files, nil)))
	report("ask for its limits", unix.Prlimit(unix.Getpid(), unix.RLIMIT_NOFILE, nil, &files))
	report("ask for another's limits", unix.Prlimit(unix.Getppid(), unix.RLIMIT_NOFILE, nil, &files))
	report("lower its priority", unix.Setpriority(unix.PRIO_PROCESS, 0, 5))
	_, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_SET, ioprioProcess, 0, idle)
	report("lower its priority for disks", errnoOf(errno))
	report("schedule itself", unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: 6}, 0))
	report("bind a thread", inThread(func() error { // with its number, as pthread_setaffinity_np does
		var cores unix.CPUSet
		return errors.Join(unix.SchedGetaffinity(unix.Gettid(), &cores), unix.SchedSetaffinity(unix.Gettid(), &cores))
	}))
}

func inThread(f func() error) error {
	done := make(chan error)
	go onThread(func() { done <- f() })
	return <-done
}

func TestNeeds(t *testing.T) {
	for _, namespace := range []bool{false, true} {
		if namespace {
			namespaces(t)
		}
		for name, result := range tried(t, &Restrictions{Writable: plugin.Writable, Namespace: namespace}, "needs") {
			if result != "done" && (!strings.HasPrefix(name, "find no") || runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
				t.Errorf("a plugin (in a user namespace: %v) cannot %s: %s", namespace, name, result)
			}
		}
	}
}

// namespaces skips the test where the kernel lets this user make no user namespaces.
func namespaces(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	Restrictions{Namespace: true}.Prepare(cmd.SysProcAttr)
	if err := cmd.Run(); err != nil {
		skips.NotRun(t, "user namespaces", "allow them: user.max_user_namespaces, kernel.unprivileged_userns_clone")
	}
}

// tryNamespace says what a user namespace shows of itself, and tries what the user root may
// outside.
func tryNamespace() {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Printf("users: %s\n", strings.Join(strings.Fields(string(text)), " "))
	text, _ = os.ReadFile("/proc/self/setgroups")
	fmt.Printf("groups: %s\n", strings.TrimSpace(string(text)))
	_, err = os.ReadFile(os.Getenv("IMPI_TEST_FILE"))
	report("others' files", err)
	report("priority", unix.Setpriority(unix.PRIO_PROCESS, 0, -5))
}

// A plugin in a user namespace of its own has its user and nobody else there, and nothing of what
// that user may do by being root.
func TestNamespace(t *testing.T) {
	namespaces(t)
	root := os.Geteuid() == 0
	file := filepath.Join(t.TempDir(), "of others")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if root {
		if err := os.Chown(file, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	got := tried(t, &Restrictions{Writable: plugin.Writable, Namespace: true}, "namespace", "IMPI_TEST_FILE="+file)
	if want := fmt.Sprintf("%d %d 1", os.Geteuid(), os.Geteuid()); got["users"] != want || got["groups"] != "deny" {
		t.Errorf("users %q, want %q; setgroups: %s", got["users"], want, got["groups"])
	}
	if !root {
		skips.NotRun(t, "what root loses in a user namespace", "run it as root")
	}
	outside := tried(t, &plugin, "namespace", "IMPI_TEST_FILE="+file)
	for _, name := range []string{"others' files", "priority"} {
		if outside[name] != "done" || got[name] == "done" {
			t.Errorf("%s: %s without a user namespace, %s in one", name, outside[name], got[name])
		}
	}
}

// tryWithout forbids user namespaces in its own and tries to start a plugin in one.
func tryWithout() {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0o600); err != nil {
		report("forbid", err)
		return
	}
	_, err := start(&Restrictions{Writable: plugin.Writable, Namespace: true}, "needs")
	report("refused", map[bool]error{false: err}[errors.Is(err, ErrNamespace)])
	_, err = start(&plugin, "needs")
	report("without", err)
}

// Where the kernel lets nobody make user namespaces the error says that it is this.
func TestKernelWithoutNamespaces(t *testing.T) {
	namespaces(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envTry+"=no namespaces")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	lines := slices.Sorted(strings.Lines(string(out)))
	if want := []string{"refused: done\n", "without: done\n"}; err != nil || !slices.Equal(lines, want) {
		t.Errorf("%v: %q, want %q", err, lines, want)
	}
}

// Other errors of a start are not blamed on namespaces.
func TestExplain(t *testing.T) {
	for _, err := range []error{nil, unix.ENOENT, unix.EACCES} {
		if got := (Restrictions{Namespace: true}).Explain(err); !errors.Is(got, err) || errors.Is(got, ErrNamespace) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := (Restrictions{}).Explain(unix.EPERM); errors.Is(got, ErrNamespace) {
		t.Errorf("without a namespace: %v", got)
	}
}
