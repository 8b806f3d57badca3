package inject

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Call is a system call that a process is about to make.
type Call struct {
	Process string // the role of Options.Role, and the process's number in it: "node 2"
	Name    string // of the call, with the type of a descriptor: "write/socket"
	N       int    // number of this call among the process's calls of that name, from 1
}

// Options are how calls are stopped.
type Options struct {
	Calls  []string                   // their names, without the type of descriptor; nil: all known calls
	Role   func(args []string) string // role of a process with this command line
	Decide func(Call) Fault           // "": the call is made. It is called by one goroutine
}

// Tree is a program that was started, and all processes that it has started.
type Tree struct {
	gone chan struct{}

	mu      sync.Mutex
	pids    []int
	applied bool
}

// Start starts a command whose calls are stopped. The caller waits for it as for any other.
func Start(cmd *exec.Cmd, o Options) (*Tree, error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "shim")
	if o.Calls == nil {
		for _, s := range table {
			o.Calls = append(o.Calls, s.name)
		}
	}
	var list []string
	for _, n := range numbers(o.Calls) {
		list = append(list, strconv.Itoa(int(n)))
	}
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.ExtraFiles = self, []*os.File{theirs}
	cmd.Env = append(slices.Clone(cmd.Environ()), variable+"="+strings.Join(list, ","))
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, err
	}
	listener, err := receive(pair[0])
	if err != nil {
		_ = cmd.Wait()
		return nil, fmt.Errorf("the filter was not set up: %w", err)
	}
	// A waiter passes its core to us at once; kernels before 6.6 do without.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	t := &Tree{gone: make(chan struct{})}
	s := &supervisor{
		Options: o, listener: listener, tree: t, processes: map[int]*process{}, groups: map[int]int{},
		becoming: map[int]bool{}, roles: map[string]int{},
	}
	go s.serve()
	return t, nil
}

// Exited returns a channel that is closed when no process of the tree is left.
func (t *Tree) Exited() <-chan struct{} { return t.gone }

// Pids returns the processes that were seen, some of which may have ended.
func (t *Tree) Pids() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.pids)
}

// Applied reports whether a call got a fault that Decide returned: a write that cannot be divided
// is made whole.
func (t *Tree) Applied() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.applied
}

type supervisor struct {
	Options
	listener  int
	tree      *Tree
	processes map[int]*process // by PID
	groups    map[int]int      // the process of a thread
	becoming  map[int]bool     // processes that were about to become another program
	roles     map[string]int   // number of processes of each role so far
}

type process struct {
	name   string
	counts map[string]int
}

func (s *supervisor) serve() {
	defer close(s.tree.gone)
	defer unix.Close(s.listener)
	for {
		n, alive := await(s.listener)
		if !alive {
			return
		}
		if n != nil {
			answer(s.listener, s.decide(n))
		}
	}
}

func (s *supervisor) decide(n *notification) response {
	goOn := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	tid := int(n.pid)
	tgid, p := s.process(tid)
	fault, name := Fault(""), ""
	if p != nil {
		name = find(&n.data, tid)
	}
	if name != "" && slices.Contains(s.Calls, strings.SplitN(name, "/", 2)[0]) {
		p.counts[name]++
		fault = s.Decide(Call{p.name, name, p.counts[name]})
	}
	if r, ok := s.apply(fault, tgid, n); ok {
		s.tree.mu.Lock()
		s.tree.applied = true
		s.tree.mu.Unlock()
		return r
	}
	if uintptr(n.data.nr) == unix.SYS_EXECVE {
		s.becoming[tgid] = true
	}
	return goOn
}

func (s *supervisor) apply(fault Fault, tgid int, n *notification) (response, bool) {
	switch fault {
	case "":
		return response{}, false
	case Short:
		wrote, ok := short(tgid, int(n.pid), &n.data)
		return response{id: n.id, value: int64(wrote)}, ok
	}
	return response{id: n.id, errno: -int32(fault.Errno())}, true
}

// process returns the process of a thread. Between fork and exec a child counts as its parent,
// which hears of errors there. The shim is none.
func (s *supervisor) process(tid int) (tgid int, p *process) {
	tgid, known := s.groups[tid]
	parent := 0
	if !known || s.processes[tgid] == nil && !s.becoming[tgid] {
		tgid, parent = identity(tid)
		s.groups[tid] = tgid
	}
	if p = s.program(tgid); p == nil {
		p = s.program(parent)
	}
	return tgid, p
}

// program returns the process with a PID, as the program that it is now.
func (s *supervisor) program(tgid int) *process {
	if !s.becoming[tgid] {
		return s.processes[tgid]
	}
	delete(s.becoming, tgid)
	line, err := os.ReadFile("/proc/" + strconv.Itoa(tgid) + "/cmdline")
	if err != nil || len(line) == 0 {
		return nil
	}
	role := s.Role(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
	s.roles[role]++
	p := &process{fmt.Sprintf("%s %d", role, s.roles[role]), map[string]int{}}
	s.processes[tgid] = p
	s.tree.mu.Lock()
	s.tree.pids = append(s.tree.pids, tgid)
	s.tree.mu.Unlock()
	return p
}

func identity(tid int) (tgid, parent int) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return tid, 0
	}
	for line := range strings.Lines(string(text)) {
		field, value, _ := strings.Cut(line, ":")
		switch field {
		case "Tgid":
			tgid, _ = strconv.Atoi(strings.TrimSpace(value))
		case "PPid":
			parent, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return tgid, parent
}
