// Package doctor is the command impi-node doctor: whether this machine is fit to run jobs.
package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/quantity"
	"github.com/openimpi/impi/plugins/host"
)

// State is the result of a check.
type State string

// The states, the worst last.
const (
	OK   State = "ok"
	Warn State = "warning" // jobs run, but worse than they could
	Fail State = "fault"   // jobs do not run, or soon will not
)

// Check is one checked property of the machine.
type Check struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// A node needs about so many open files and threads for its procs; with fewer it does not start.
const (
	filesOfNode, filesOfProc     = 40, 5
	threadsOfNode, threadsOfProc = 34, 4
)

// leastProcs are those that a node is examined for without a job file.
const leastProcs = 2

// Figures below which a check warns.
const (
	fewFiles   = 4096       // open files: a node has several for each link
	fewProcs   = 1024       // processes and threads of the user
	smallUDP   = 7500 << 10 // bytes of a socket's buffer that QUIC asks for
	littleRoom = 64 << 20   // bytes in the folder for sockets, logs and traces, and of memory
)

// machine is what the checks examine; tests replace it.
type machine struct {
	proc   string // /proc
	root   bool   // this is root, for whom the limit of processes does not count
	groups string // /sys/fs/cgroup
	limit  func(resource int) (soft, hard uint64, err error)
	free   func(dir string) (uint64, error)
	synced func() (bool, error) // the clock
	runDir func() (path string, err error)
	memory func() error // checks for shared memory

	folder      string // of this program; empty: unknown
	libraryPath string // LD_LIBRARY_PATH
	says        func(program string) (version string, err error)

	builtins []config.Builtin
}

func here() *machine {
	return &machine{
		folder:      folderOfProgram(),
		libraryPath: os.Getenv("LD_LIBRARY_PATH"),
		says:        says,

		proc:   "/proc",
		root:   os.Geteuid() == 0,
		groups: "/sys/fs/cgroup",
		limit: func(resource int) (soft, hard uint64, err error) {
			var r unix.Rlimit
			err = unix.Getrlimit(resource, &r)
			return r.Cur, r.Max, err
		},
		free: func(dir string) (uint64, error) {
			var s unix.Statfs_t
			err := unix.Statfs(dir, &s)
			return s.Bavail * uint64(s.Bsize), err
		},
		synced: func() (bool, error) {
			var t unix.Timex
			state, err := unix.Adjtimex(&t)
			return state != unix.TIME_ERROR, err
		},
		runDir: func() (string, error) {
			d, err := host.NewRunDir("")
			if err != nil {
				return "", err
			}
			return d.Path, d.Close()
		},
		memory: func() error {
			fd, err := unix.MemfdCreate("impi-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Fallocate(fd, 0, 0, 1<<20)
		},
	}
}

// folderOfProgram is where this program is, behind symbolic links.
func folderOfProgram() string {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// checks examines the machine for nodes of so many procs in all, which may need shims.
func (m *machine) checks(procs int, shims ...string) []Check {
	return append(m.versions(shims), m.cores(), m.files(procs), m.processes(procs), m.sockets(), m.shared(), m.lending(), m.datagrams(), m.clock())
}

func ok(name, found string) Check { return Check{Name: name, State: OK, Found: found} }

// read returns the first line of a file below /proc.
func (m *machine) read(name string) (string, error) {
	b, err := os.ReadFile(m.proc + "/" + name)
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line), err
}

func (m *machine) cores() Check {
	c := ok("cores", fmt.Sprintf("%d may be used", runtime.NumCPU()))
	load, err := m.read("loadavg")
	if err != nil {
		return c
	}
	first, _, _ := strings.Cut(load, " ")
	now, err := strconv.ParseFloat(first, 64)
	if err == nil && now > float64(runtime.NumCPU()) {
		c.State, c.Found = Warn, fmt.Sprintf("%s, and the load is %.1f", c.Found, now)
		c.Remedy = "end what else runs here: procs that wait for a core are slow, and others wait for them"
	}
	return c
}

func (m *machine) files(procs int) Check {
	const name = "open files"
	soft, hard, err := m.limit(unix.RLIMIT_NOFILE)
	switch {
	case err != nil:
		return Check{name, Warn, err.Error(), "see ulimit -n"}
	case hard < uint64(filesOfNode+filesOfProc*procs):
		return Check{name, Fail, fmt.Sprintf("%d at most, and a node of %d procs needs about %d", hard, procs, filesOfNode+filesOfProc*procs), moreFiles}
	case hard < fewFiles:
		return Check{name, Warn, fmt.Sprintf("%d at most", hard), moreFiles}
	}
	return ok(name, fmt.Sprintf("%d, %d at most", soft, hard))
}

func (m *machine) processes(procs int) Check {
	const name = "processes"
	soft, _, err := m.limit(unix.RLIMIT_NPROC)
	switch {
	case err != nil:
		return Check{name, Warn, err.Error(), "see ulimit -u"}
	case !m.root && soft < uint64(threadsOfNode+threadsOfProc*procs):
		return Check{name, Fail, fmt.Sprintf("%d of this user at most, and a node of %d procs needs about %d", soft, procs, threadsOfNode+threadsOfProc*procs), moreProcs}
	case soft < fewProcs:
		return Check{name, Warn, fmt.Sprintf("%d of this user at most", soft), moreProcs}
	case soft == unix.RLIM_INFINITY:
		return ok(name, "as many as there is room for")
	}
	return ok(name, fmt.Sprintf("%d of this user at most", soft))
}

var (
	moreFiles = fmt.Sprintf("raise it: ulimit -Hn %d, or nofile in /etc/security/limits.conf, or LimitNOFILE= of a unit; a proc has one for each peer", fewFiles)
	moreProcs = fmt.Sprintf("raise it: ulimit -u %d; threads count, too", fewProcs)
)

func (m *machine) sockets() Check {
	const name = "run directory"
	dir, err := m.runDir()
	if err != nil {
		return Check{name, Fail, err.Error(), "set XDG_RUNTIME_DIR to a short path that is yours alone"}
	}
	room, err := m.free(filepath.Dir(dir))
	if err == nil && room < littleRoom {
		return Check{name, Fail, fmt.Sprintf("%s has %s left", filepath.Dir(dir), quantity.Bytes(room)), "make room there, or set XDG_RUNTIME_DIR to another folder"}
	}
	return ok(name, "below "+filepath.Dir(dir))
}

func (m *machine) shared() Check {
	const name = "shared memory"
	if err := m.memory(); err != nil {
		return Check{name, Fail, "none: " + err.Error(), "give the job more memory (cgroup), or do without: prefer = [" + m.withoutMemory() + "], and board = false in host"}
	}
	total, free, of := m.roomFor()
	if total == 0 {
		return ok(name, "there is some; how much cannot be seen here")
	}
	found := fmt.Sprintf("%s free of %s, %s", quantity.Bytes(free), quantity.Bytes(total), of)
	if free < littleRoom {
		return Check{name, Warn, found, "give the job more memory, or end what else has it"}
	}
	return ok(name, found)
}

// withoutMemory returns the built-in transports that need no shared memory and no block, best
// first, as a list of a job file.
func (m *machine) withoutMemory() string {
	var names []string
	for _, b := range m.builtins {
		if !b.Memory && !b.NeedsBlock {
			names = append(names, strconv.Quote(b.Name))
		}
	}
	return strings.Join(names, ", ")
}

func (m *machine) lending() Check {
	const name = "long messages within the machine"
	scope, err := m.read("sys/kernel/yama/ptrace_scope")
	if err != nil || scope == "0" {
		return ok(name, "procs read each other's memory")
	}
	return Check{name, Warn, "procs may not read each other's memory (kernel.yama.ptrace_scope is " + scope + "), so that each is copied twice", "as root: sysctl -w kernel.yama.ptrace_scope=0"}
}

func (m *machine) datagrams() Check {
	const name = "QUIC"
	var small []string
	for _, s := range []string{"rmem_max", "wmem_max"} {
		text, err := m.read("sys/net/core/" + s)
		if n, bad := strconv.Atoi(text); err == nil && bad == nil && n < smallUDP {
			small = append(small, fmt.Sprintf("net.core.%s=%d", s, smallUDP))
		}
	}
	if len(small) > 0 {
		return Check{name, Warn, "the buffers of its sockets are smaller than it asks for; it matters between sites, not elsewhere", "as root: sysctl -w " + strings.Join(small, " ")}
	}
	return ok(name, "buffers are large enough, or the limits cannot be seen here")
}

func (m *machine) clock() Check {
	const name = "clock"
	synced, err := m.synced()
	switch {
	case err != nil:
		return Check{name, Warn, "not known: " + err.Error(), "see that chrony or systemd-timesyncd runs: logs of several machines are hard to compare without, and certificates count by the clock"}
	case !synced:
		return Check{name, Warn, "the kernel says that nobody sets it", "run chrony or systemd-timesyncd: logs of several machines are hard to compare without, and certificates count by the clock"}
	}
	return ok(name, "is set by a time service")
}
