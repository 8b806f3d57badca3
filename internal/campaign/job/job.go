// Package job runs the short jobs of campaigns, and looks at what they leave behind.
package job

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Kind is a job of two sites of two procs on this machine.
type Kind struct {
	Name   string
	blocks string // of the job file
}

// Kinds are the jobs: by shared memory, by TCP, and by a plugin whose process passes all bytes on.
// The first two have their transports' processes, too: these run the node's own program.
var Kinds = []Kind{
	{"shm", `route "*" { prefer = ["shm", "tcp"] }`},
	{"tcp", `route "*" { prefer = ["tcp"] }`},
	{"plugin", `plugin_dir = "TEMP/plugins"
transport "chaos-tcp" { plugin = "impi-transport-chaos-tcp" }
route "*" {
  prefer     = ["chaos-tcp", "tcp"]
  data_plane = ["ring"]
}`},
}

const file = `job { embedded_server {} }
limits { start = "20s" }
program { command = ["BIN/ring", "-rounds", "ROUNDS"] }
BLOCKS
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}
site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
`

// successText are what the program prints if what it has received was right.
const successText = "as it must be"

// Limit is the maximum time of a job, whatever goes wrong in it: it has seconds until its start has
// failed, and more until a silent peer is given up.
const Limit = 90 * time.Second

// grace is how long the other processes of a job may remain after the end of its first process.
const grace = 5 * time.Second

// Workspace is the place where jobs run: programs, and a folder for the jobs.
type Workspace struct {
	Bin  string // absolute
	Temp string // for folders of jobs; empty
}

// NewWorkspace makes a folder, which Close removes.
func NewWorkspace(bin string) (b *Workspace, err error) {
	b = &Workspace{}
	if b.Bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	for _, program := range []string{"impi-node", "impi-transport-chaos", "ring"} {
		if _, err := exec.LookPath(filepath.Join(b.Bin, program)); err != nil {
			return nil, fmt.Errorf("%w: make build", err)
		}
	}
	if b.Temp, err = os.MkdirTemp("", "impi-campaign-"); err != nil {
		return nil, err
	}
	// The plugin's file name determines its transport.
	err = os.Mkdir(filepath.Join(b.Temp, "plugins"), 0o700)
	var binary []byte
	if err == nil {
		binary, err = os.ReadFile(filepath.Join(b.Bin, "impi-transport-chaos"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(b.Temp, "plugins", "impi-transport-chaos-tcp"), binary, 0o755)
	}
	return b, err
}

// Close removes the folder.
func (b *Workspace) Close() { _ = os.RemoveAll(b.Temp) }

// Job is a job that runs or has ended.
type Job struct {
	Cmd *exec.Cmd
	dir string
	out Output
}

// New writes a job file and makes the command of the job, whose program does rounds rounds.
func (b *Workspace) New(ctx context.Context, k Kind, rounds int) (*Job, error) {
	dir, err := os.MkdirTemp(b.Temp, "")
	if err != nil {
		return nil, err
	}
	j := &Job{dir: dir}
	if err := os.Mkdir(j.temp(), 0o700); err != nil {
		return nil, err
	}
	return j, b.prepare(ctx, j, k, rounds)
}

func (b *Workspace) prepare(ctx context.Context, j *Job, k Kind, rounds int) error {
	text := strings.NewReplacer("BLOCKS", k.blocks).Replace(file)
	text = strings.NewReplacer("BIN", b.Bin, "TEMP", b.Temp, "ROUNDS", strconv.Itoa(rounds)).Replace(text)
	j.Cmd = j.command(ctx, b.Bin)
	j.Cmd.Stdout, j.Cmd.Stderr = &j.out, &j.out
	return os.WriteFile(j.file(), []byte(text), 0o600)
}

// RunAgain runs a short job in the folder of one that has ended. Nodes remove files that killed
// ones have left.
func (b *Workspace) RunAgain(ctx context.Context, j *Job, k Kind) error {
	err := b.prepare(ctx, j, k, 1)
	if err == nil {
		err = j.Cmd.Run()
	}
	return err
}

func (j *Job) temp() string { return filepath.Join(j.dir, "tmp") }
func (j *Job) file() string { return filepath.Join(j.dir, "job.hcl") }

// command is the launcher of the job, whose processes have no folder for files but the job's own.
func (j *Job) command(ctx context.Context, bin string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "impi-node"), "-config", j.file())
	cmd.Dir = j.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "XDG_RUNTIME_DIR=") && !strings.HasPrefix(v, "TMPDIR=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+j.temp())
	cmd.WaitDelay = grace
	return cmd
}

// Watch returns a channel that is closed when no process of the job is left, which it checks
// periodically from now on: most are children of other processes, whose ends the kernel does not
// report to us.
func (j *Job) Watch() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for len(j.Processes()) > 0 {
			<-time.After(50 * time.Millisecond)
		}
	}()
	return gone
}

// Output returns the job's output so far.
func (j *Job) Output() string { return j.out.String() }

// Judge waits for the end of a job that was started: over receives the result of its launcher's
// Wait, gone is closed when all its processes have ended. Processes that have not ended then are
// killed.
func (j *Job) Judge(ctx context.Context, over <-chan error, gone <-chan struct{}) (o Outcome, err error) {
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	ended := true
	select {
	case err = <-over:
	case <-limit.C:
		o.Hung, ended = true, false
	case <-ctx.Done():
		ended = false
	}
	if ended {
		select {
		case <-gone:
		case <-time.After(grace):
			for pid, line := range j.Processes() {
				o.Left = append(o.Left, fmt.Sprintf("process %d (%s)", pid, line))
			}
		}
	}
	for pid := range j.Processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if !ended {
		err = <-over
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		o.Status, err = exit.ExitCode(), nil
	}
	o.Output = j.Output()
	return o, cmp.Or(context.Cause(ctx), err)
}

// Processes returns the job's running processes, each with its command line. It finds them by their
// folder for files, which is in their environment.
func (j *Job) Processes() map[int]string {
	found := map[int]string{}
	mark := []byte(j.temp())
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(environment, mark) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		found[pid] = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}

// Files returns the files that the job has left in its folder, and in the folder for all users if a
// process of the job could not use its own. The folder of a user's processes stays, with its lock.
func (j *Job) Files(pids []int) (left []string) {
	user := "impi-" + strconv.Itoa(os.Getuid())
	stays := []string{".", user, filepath.Join(user, "lock")}
	_ = filepath.WalkDir(j.temp(), func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(j.temp(), path)
		if err == nil && !slices.Contains(stays, name) {
			left = append(left, name)
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		return nil
	})
	entries, _ := os.ReadDir(filepath.Join("/tmp", user))
	for _, e := range entries {
		pid, _, _ := strings.Cut(e.Name(), "-")
		if n, err := strconv.Atoi(pid); err == nil && slices.Contains(pids, n) {
			left = append(left, filepath.Join("/tmp", user, e.Name()))
		}
	}
	return left
}

// Remove removes the job's folder.
func (j *Job) Remove() { _ = os.RemoveAll(j.dir) }

// Output holds the output of several processes.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write keeps b. It never fails.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
