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

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/wan"
	"github.com/openimpi/impi/internal/wan/area"
)

// Kind is a job of two sites of two procs on this machine.
type Kind struct {
	Name   string
	blocks string // of the job file

	// Wide is the line between the sites if they are far from each other, each a network namespace,
	// with nodes that no launcher has started; nil: both are at this machine's loopback.
	Wide *wan.Shape
}

// Kinds are the jobs: by shared memory, by TCP, and by a plugin whose process passes all bytes on.
// The first two have their transports' processes, too: these run the node's own program.
var Kinds = []Kind{
	{Name: "shm", blocks: `route "*" { prefer = ["shm", "tcp"] }`},
	{Name: "tcp", blocks: `route "*" { prefer = ["tcp"] }`},
	{Name: "plugin", blocks: `plugin_dir = "TEMP/plugins"
transport "chaos-tcp" { plugin = "impi-transport-chaos-tcp" }
route "*" {
  prefer     = ["chaos-tcp", "tcp"]
  data_plane = ["ring"]
}`},
}

// Wide is a job over a wide area that loses packets, doubles them, has them overtake each other, and is
// down from time to time, with links that break and are resumed.
var Wide = Kind{
	"wide", `plugin_dir = "TEMP/plugins"
transport "chaos-tcp" {
  plugin = "impi-transport-chaos-tcp"
  config { cut_bytes = 20000 }
}
route "*" {
  prefer     = ["chaos-tcp", "tcp"]
  data_plane = ["ring"]
  resume     = true
}`, &wan.Shape{
		Rate: 500e6, Delay: 2 * time.Millisecond, Jitter: time.Millisecond, Queue: 1 << 20,
		Loss: 0.002, Duplicate: 0.002, Reorder: 0.01, ReorderDelay: time.Millisecond,
		OutageInterval: time.Second, OutageLength: 200 * time.Millisecond,
	},
}

// atLoopback and afar are what a job file has in the place of names, by kind.
var (
	atLoopback = []string{"SERVER", " embedded_server {} ", "ALPHA", "127.0.0.2", "BETA", "127.0.0.3"}
	afar       = []string{
		"SERVER", "\n  embedded_server { listen = \"" + area.Address(0, 0).String() + ":7800\" }\n  auth \"key\" { file = \"job.key\" }\n",
		"ALPHA", area.Address(0, 0).String(), "BETA", area.Address(1, 0).String(),
	}
)

const file = `job {SERVER}
limits { start = "20s" }
program { command = ["BIN/ring", "-rounds", "ROUNDS"] }
BLOCKS
site "alpha" {
  client = 0
  host { address = "ALPHA"  procs = 2 }
}
site "beta" {
  client = 1
  host { address = "BETA"  procs = 2 }
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
	Seed uint64 // of what happens on the lines of jobs over a wide area
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

	sites  []*netns.Machine // if they are far from each other
	remove func()           // removes them
}

// New writes a job file and makes the command of the job, whose program does rounds rounds.
func (b *Workspace) New(ctx context.Context, k Kind, rounds int) (*Job, error) {
	dir, err := os.MkdirTemp(b.Temp, "")
	if err != nil {
		return nil, err
	}
	j := &Job{dir: dir, remove: func() {}}
	if err := os.Mkdir(j.temp(), 0o700); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, j, k, rounds); err != nil {
		j.Remove()
		return nil, err
	}
	return j, nil
}

func (b *Workspace) prepare(ctx context.Context, j *Job, k Kind, rounds int) error {
	names := atLoopback
	j.Cmd = exec.CommandContext(ctx, filepath.Join(b.Bin, "impi-node"), "-config", j.file())
	if k.Wide != nil {
		names = afar
		if err := j.makeArea(ctx, b, k); err != nil {
			return err
		}
	}
	j.setUp()
	text := strings.NewReplacer("BLOCKS", k.blocks).Replace(file)
	text = strings.NewReplacer(append(slices.Clone(names), "BIN", b.Bin, "TEMP", b.Temp, "ROUNDS", strconv.Itoa(rounds))...).Replace(text)
	return os.WriteFile(j.file(), []byte(text), 0o600)
}

// makeArea makes the network of a job with distant sites, unless it is there already, and the command that
// starts a node at each. A job without the right to do so fails with ErrNoArea.
func (j *Job) makeArea(ctx context.Context, b *Workspace, k Kind) error {
	if len(j.sites) == 0 {
		remove, err := netns.Outside(func(t netns.TB) {
			j.sites = area.New(t, area.Options{Sites: 2, Seed: b.Seed, Shape: func(int, int) wan.Shape { return *k.Wide }}).Sites
		})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoArea, err)
		}
		j.remove = remove
	}
	j.Cmd = netns.CommandOnEach(ctx, j.sites, filepath.Join(b.Bin, "impi-node"), func(i int) []string {
		return []string{"-config", j.file(), "-site", []string{"alpha", "beta"}[i]}
	})
	return os.WriteFile(filepath.Join(j.dir, "job.key"), []byte("4242\n"), 0o600)
}

// ErrNoArea is wrapped by the error of a job whose network could not be made.
var ErrNoArea = errors.New("there is no wide area")

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

// setUp gives the processes of the job no folder for files but the job's own.
func (j *Job) setUp() {
	j.Cmd.Dir = j.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "XDG_RUNTIME_DIR=") && !strings.HasPrefix(v, "TMPDIR=") {
			j.Cmd.Env = append(j.Cmd.Env, v)
		}
	}
	j.Cmd.Env = append(j.Cmd.Env, "TMPDIR="+j.temp())
	j.Cmd.WaitDelay = grace
	j.Cmd.Stdout, j.Cmd.Stderr = &j.out, &j.out
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

// Remove removes the job's folder and its network.
func (j *Job) Remove() {
	j.remove()
	_ = os.RemoveAll(j.dir)
}

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
