package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// process is one plugin process, as go-plugin's runner. Unlike go-plugin's own, it executes
// the verified file, starts it on the long-lived thread, reads the outputs itself, and
// keeps them for errors.
type process struct {
	cmd    *exec.Cmd
	exe    *executable
	log    hclog.Logger
	end    *os.File // the plugin's end of the descriptor channel
	secret []byte   // of the control connection; nil: none is shared
	tmpDir string
	ctx    context.Context // of the start
	unbind func() bool     // from ctx

	restrict func() error      // takes rights from the thread that starts the process
	blame    func(error) error // adds an explanation to the error of a start

	stdout, stderr *os.File // our ends of the pipes
	shake          *io.PipeReader
	pumps          sync.WaitGroup
	reaped         chan struct{} // closed when the process has ended
	exited         chan struct{} // closed when its outputs have been read, too
	waitErr        error         // valid when reaped is closed

	said tail
	mu   sync.Mutex
	line string // the first line of the standard output
}

// lateOutput is how long after a plugin's death its outputs are still read, in case a child
// has inherited them, and how long after the end of an output or channel the process is
// waited for.
const lateOutput = time.Second

// newProcess prepares the process with the environment env from go-plugin, which gets the secret by
// proto.ControlFD if it is not nil. It takes over end, but not exe. The process is killed when the
// context ends, until unbind is called.
func newProcess(ctx context.Context, log hclog.Logger, env []string, exe *executable, end *os.File, secret []byte, tmpDir string) *process {
	return &process{
		cmd: &exec.Cmd{Args: []string{exe.path}, Env: env, SysProcAttr: &syscall.SysProcAttr{
			// Signals to the node's group, such as Ctrl-C, are for the node: it needs its
			// plugins until it has ended the job in order.
			Setpgid: true,
			// A plugin with the SDK replaces this and exits in order when the node dies;
			// others are killed.
			Pdeathsig: syscall.SIGKILL,
		}},
		exe: exe, log: log, end: end, secret: secret, tmpDir: tmpDir, ctx: ctx, unbind: func() bool { return true }, restrict: func() error { return nil }, blame: func(err error) error { return err },
		reaped: make(chan struct{}), exited: make(chan struct{}),
	}
}

// Start launches the process. It does not block, so it ignores go-plugin's context.
func (p *process) Start(context.Context) error {
	defer p.end.Close() // the plugin has its own copy; with ours open we could not see its death
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer outW.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		return fmt.Errorf("pipe: %w", err)
	}
	defer errW.Close()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = null, outW, errW
	p.cmd.ExtraFiles = append([]*os.File{p.end}, p.exe.inherits()...)
	if p.secret != nil {
		r, err := pipeOf(p.secret)
		if err != nil {
			return errors.Join(err, outR.Close(), errR.Close())
		}
		defer r.Close()
		p.cmd.ExtraFiles = []*os.File{p.end, r} // a built-in plugin inherits nothing else
	}
	path, release, err := p.exe.execPath(append(p.cmd.ExtraFiles, null, outW, errW))
	if err != nil {
		return errors.Join(err, outR.Close(), errR.Close())
	}
	defer release()
	p.cmd.Path = path
	if err := startProcess(p.cmd, p.restrict, p.reaped); err != nil {
		outR.Close()
		errR.Close()
		close(p.reaped)
		close(p.exited)
		return p.blame(err)
	}
	p.stdout, p.stderr = outR, errR
	p.unbind = context.AfterFunc(p.ctx, func() { _ = p.Kill(p.ctx) })
	p.watch()
	return nil
}

// pipeOf returns a pipe from which a secret can be read once. Others may look into environments.
func pipeOf(secret []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	_, err = w.Write(secret) // does not block: the secret fits into the pipe
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (p *process) watch() {
	shake, w := io.Pipe()
	p.shake = shake
	p.pumps.Add(2)
	go func() {
		defer p.pumps.Done()
		defer p.stdout.Close()
		defer w.Close()
		p.pumpStdout(w)
	}()
	go func() {
		defer p.pumps.Done()
		defer p.stderr.Close()
		var panicking bool
		eachLine(p.stderr, func(line []byte) {
			p.said.add(string(line))
			logLine(p.log, string(line), &panicking)
		})
	}()
	go func() {
		p.endFamily()
		p.waitErr = p.cmd.Wait()
		close(p.reaped)
		late := time.Now().Add(lateOutput)
		p.stdout.SetReadDeadline(late)
		p.stderr.SetReadDeadline(late)
		p.pumps.Wait()
		close(p.exited)
	}()
}

// endFamily waits for the process to end and then kills the processes that it has left
// behind: its process group, whose number cannot be reused before the process is reaped.
func (p *process) endFamily() {
	pid := p.cmd.Process.Pid
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // the process itself is in the group too, but has ended
}

// pumpStdout passes the first line to go-plugin and logs the rest.
func (p *process) pumpStdout(first *io.PipeWriter) {
	seen := false
	eachLine(p.stdout, func(line []byte) {
		if seen {
			p.log.Debug(string(line))
			return
		}
		seen = true
		p.mu.Lock()
		p.line = string(line)
		p.mu.Unlock()
		_, _ = first.Write(append(line, '\n')) // go-plugin may not be waiting for it any more
	})
	if !seen {
		// go-plugin kills a process whose output ends without a handshake. Wait first for a
		// process that is about to exit, so that its exit status is known.
		p.ended(lateOutput)
	}
}

// handshake is the first line of the standard output, if there was one.
func (p *process) handshake() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line
}

// ended waits up to d for the process to end, and reports whether it did.
func (p *process) ended(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.reaped:
	case <-timer.C:
	}
	select {
	case <-p.reaped:
		return true
	default:
		return false
	}
}

// finished waits up to d for the process to end and, if it does, until its outputs have been read.
func (p *process) finished(d time.Duration) {
	if p.ended(d) {
		<-p.exited // within lateOutput
	}
}

func (p *process) ending() string {
	select {
	case <-p.reaped:
	default:
		return "is still running"
	}
	var exit *exec.ExitError
	switch {
	case p.waitErr == nil:
		return "exited with status 0"
	case !errors.As(p.waitErr, &exit):
		return "ended: " + p.waitErr.Error()
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%v)", ws.Signal(), ws.Signal())
	}
	return fmt.Sprintf("exited with status %d", exit.ExitCode())
}

// Wait waits until the process has ended and its outputs have been read.
func (p *process) Wait(context.Context) error {
	<-p.exited
	return p.waitErr
}

// Kill kills the process, which may have ended already. It returns no errors, since callers
// could not handle them.
func (p *process) Kill(context.Context) error {
	if p.cmd.Process == nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Stdout returns a reader with the line of the handshake only.
func (p *process) Stdout() io.ReadCloser { return p.shake }

// Stderr returns an empty reader that ends with the process: its lines are logged
// elsewhere.
func (p *process) Stderr() io.ReadCloser { return untilClosed(p.exited) }

// Name returns the binary's path.
func (p *process) Name() string { return p.exe.path }

// ID returns the process ID for messages; empty before the start.
func (p *process) ID() string {
	if p.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(p.cmd.Process.Pid)
}

// Diagnose returns nothing: explain makes the message.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost returns its arguments: node and plugin see the same files.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin returns its arguments, as PluginToHost does.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// untilClosed is an empty reader that ends when the channel is closed.
type untilClosed chan struct{}

func (c untilClosed) Read([]byte) (int, error) { <-c; return 0, io.EOF }
func (c untilClosed) Close() error             { return nil }
