package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is the user that runs LAM if we are root, since LAM refuses root.
const nobody = 65534

// The variables by which LAM's programs find their universe. All processes of a universe
// have them, so that processes that were left over can be found.
const (
	sessionPrefix = "LAM_MPI_SESSION_PREFIX"
	sessionSuffix = "LAM_MPI_SESSION_SUFFIX"
)

// Universe is one LAM universe: a daemon on one machine, and the processes under it.
type Universe struct {
	in  *Install
	on  func(ctx context.Context, name string, args ...string) *exec.Cmd // its machine
	dir string
	env []string
}

// Compile makes a program of one C file with LAM's compiler.
func (in *Install) Compile(ctx context.Context, out, source string) error {
	c := exec.CommandContext(ctx, in.Bin("mpicc"), "-O1", "-o", out, source)
	c.Env = append(os.Environ(), "PATH="+filepath.Join(in.Prefix, "bin")+":"+os.Getenv("PATH"))
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("peers: mpicc: %w\n%s", err, text)
	}
	return nil
}

// Boot starts a universe whose IMPI host advertises address, on the machine for which on makes
// commands. It makes the folder dir, which is removed with the universe. env is for its programs.
func (in *Install) Boot(ctx context.Context, on func(ctx context.Context, name string, args ...string) *exec.Cmd, dir string, address netip.Addr, env ...string) (*Universe, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return nil, err
		}
	}
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1\n"), 0o644); err != nil {
		return nil, err
	}
	s := &Universe{in: in, on: on, dir: dir, env: append([]string{
		"PATH=" + filepath.Join(in.Prefix, "bin") + ":/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + dir, "TMPDIR=" + dir,
		sessionPrefix + "=" + dir, sessionSuffix + "=impi", "IMPI_HOST_NAME=" + address.String(),
		// The time in ms that the daemon sleeps between checks for messages of its own procs while
		// no packet arrives: 1 is the minimum.
		"LAM_IMPID_SPIN_TIMEOUT=1",
		// LAM's procs use TCP: with LAM's shared memory MPI_ANY_SOURCE kills a proc that has
		// another LAM proc beside it.
		"LAM_MPI_SSI_rpi=tcp",
	}, env...)}
	if err := s.tool(ctx, "lamboot", hosts); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, nil
}

// tool runs one of LAM's programs that print nothing on success. Its output goes to a file,
// because the daemon inherits it and keeps it open.
func (s *Universe) tool(ctx context.Context, name string, args ...string) error {
	out, err := os.Create(filepath.Join(s.dir, name+".txt"))
	if err != nil {
		return err
	}
	defer out.Close()
	c := s.Command(ctx, name, args...)
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("peers: %s: %w\n%s", name, err, text)
	}
	return nil
}

// Command returns a command that runs one of LAM's programs in the universe.
func (s *Universe) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	words := append([]string{s.in.Bin(name)}, args...)
	if os.Geteuid() == 0 {
		words = append([]string{"setpriv", "--reuid", strconv.Itoa(nobody), "--regid", strconv.Itoa(nobody), "--clear-groups", "--"}, words...)
	}
	c := s.on(ctx, words[0], words[1:]...)
	c.Dir, c.Env = s.dir, s.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// Run runs a program as one client of a job. Its output goes to out.
func (s *Universe) Run(ctx context.Context, out io.Writer, client int, server netip.AddrPort, procs int, command ...string) error {
	args := append([]string{"-client", strconv.Itoa(client), server.String(), "-np", strconv.Itoa(procs), command[0], "--"}, command[1:]...)
	c := s.Command(ctx, "mpirun", args...)
	c.Stdout, c.Stderr = out, out
	c.WaitDelay = 5 * time.Second
	return c.Run()
}

// Halt ends the universe. It kills the processes that were left over, and returns them.
func (s *Universe) Halt(ctx context.Context) (left []string, err error) {
	for _, p := range s.processes() {
		if name := p.name(); name != "lamd" {
			left = append(left, name)
		}
	}
	if len(s.processes()) > 0 {
		err = s.tool(ctx, "lamhalt")
	}
	return left, errors.Join(err, s.Kill())
}

// Kill kills all processes of the universe, and returns when they have gone.
func (s *Universe) Kill() error {
	const patience = 10 * time.Second
	for range 5 { // some may start others meanwhile
		all := s.processes()
		if len(all) == 0 {
			return nil
		}
		for _, p := range all {
			_ = unix.Kill(int(p), unix.SIGKILL)
		}
		for _, p := range all {
			p.gone(patience)
		}
	}
	return fmt.Errorf("peers: processes of %s cannot be killed", s.dir)
}

type process int

func (s *Universe) processes() (all []process) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), sessionPrefix+"="+s.dir) {
			all = append(all, process(pid))
		}
	}
	return all
}

func (p process) name() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", int(p)))
	return strings.TrimSpace(string(b))
}

func (p process) gone(patience time.Duration) {
	fd, err := unix.PidfdOpen(int(p), 0)
	if err != nil {
		return // the process has ended
	}
	defer unix.Close(fd)
	for until := time.Now().Add(patience); time.Now().Before(until); {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, int(time.Until(until).Milliseconds())); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
