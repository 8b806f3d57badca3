package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/launch"
)

// Limits of time.
const (
	// linger is how long a local command may take to end after all programs that it reaches have
	// ended.
	linger = 2 * time.Second

	// notice is how long it may take, in addition to the grace, until the end of standard input has
	// reached a program and its end was reported.
	notice = 5 * time.Second
)

// remoteCommand is a local command that reaches the shells of some machines.
type remoteCommand struct {
	args     []string // the program is looked up in PATH
	env      []string // nil: ours
	serves   []int    // indices of the machines
	which    string   // if there are several machines: the variable in their environment that has Machine.Name
	labelled bool     // lines of its outputs begin with the index of a machine in serves
	sweep    bool     // the guard must kill what a program leaves behind, as nothing else does

	// explain returns what to tell the user about messages that came before a program ran, or after
	// it was lost; "" if it does not know.
	explain func(messages string) string
}

// Started is a command that was started on machines.
type Started struct {
	machines []Machine
	command  Command
	launcher *launch.Launcher
	commands []*running
	watchers sync.WaitGroup // of commands
	events   chan event     // received by Start
	over     chan struct{}  // closed when everything has ended

	mu      sync.Mutex
	places  []place
	ends    chan End
	stopped bool
}

type place struct {
	up     bool // the program runs
	failed bool // it could not be started
	told   int  // number of its outputs that have reported the end
	status int
	ended  bool
}

// event tells Start that the program of a machine runs, or why it does not.
type event struct {
	machine int
	failed  string
}

// start starts a command by commands. At most limit of them are starting at a time; a command is
// starting until its programs run or it has ended.
func start(ctx context.Context, machines []Machine, c Command, commands []remoteCommand, limit int) (*Started, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", strings.Join(c.Args, " "), err)
	}
	s := &Started{
		machines: machines, command: c, launcher: launch.New(),
		events: make(chan event, 2*len(machines)), over: make(chan struct{}),
		places: make([]place, len(machines)), ends: make(chan End, len(machines)),
	}
	mark := newMark()
	var failed []event
	waiting, underWay := commands, 0
	running := map[int]*running{}
	up := 0
	for up < len(machines) && len(failed) == 0 {
		for len(waiting) > 0 && underWay < limit {
			r, err := s.open(waiting[0], mark)
			if err != nil {
				failed = append(failed, event{waiting[0].serves[0], err.Error()})
				break
			}
			for _, i := range r.serves {
				running[i] = r
			}
			waiting, underWay = waiting[1:], underWay+1
		}
		if len(failed) > 0 {
			break
		}
		select {
		case e := <-s.events:
			if e.failed != "" {
				failed = append(failed, e)
				break
			}
			up++
			if running[e.machine].isReady() {
				underWay--
			}
		case <-ctx.Done():
			return nil, s.late(ctx)
		}
	}
	if len(failed) > 0 {
		return nil, s.cannot(failed)
	}
	go s.finish()
	return s, nil
}

// cannot stops what was started, and returns the error of the programs that could not be started.
func (s *Started) cannot(failed []event) error {
	if s.command.Failing != nil {
		s.command.Failing(s.describe(failed))
	}
	go s.finish()
	_ = s.Stop()
	for done := false; !done; {
		select {
		case e := <-s.events:
			if e.failed != "" {
				failed = append(failed, e)
			}
		default:
			done = true
		}
	}
	return s.describe(failed)
}

func (s *Started) describe(failed []event) error {
	slices.SortFunc(failed, func(a, b event) int { return a.machine - b.machine })
	var reasons []error
	for i, e := range failed {
		if i == 5 {
			reasons = append(reasons, fmt.Errorf("and on %d more machines", len(failed)-i))
			break
		}
		reasons = append(reasons, fmt.Errorf("%s: %s", s.machines[e.machine].Name, e.failed))
	}
	return fmt.Errorf("cannot start %s on all %d machines: %w", s.command.Args[0], len(s.machines), errors.Join(reasons...))
}

func (s *Started) late(ctx context.Context) error {
	s.mu.Lock()
	var silent []Machine
	for i, p := range s.places {
		if !p.up {
			silent = append(silent, s.machines[i])
		}
	}
	s.mu.Unlock()
	go s.finish()
	_ = s.Stop()
	why := context.Cause(ctx)
	if errors.Is(why, context.DeadlineExceeded) {
		return fmt.Errorf("%s was not started in time on %s: no answer came from there. Try by hand whether a command can be run there: %w", s.command.Args[0], describe(silent), why)
	}
	return fmt.Errorf("the start of %s was broken off before it ran on %s: %w", s.command.Args[0], describe(silent), why)
}

func (s *Started) open(c remoteCommand, mark string) (*running, error) {
	r := &running{remoteCommand: c, s: s, over: make(chan struct{})}
	path, err := lookPath(c.args[0])
	if err != nil {
		return nil, err
	}
	stdin, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	env := c.env
	if env == nil {
		env = os.Environ()
	}
	stdout, stderr := r.outputs(mark)
	r.process, err = s.launcher.Start(launch.Spec{
		Path: path, Args: c.args, Env: env, Stdin: stdin,
		Stdout: launch.NewOutput(stdout, nil).Stream(nil), Stderr: launch.NewOutput(stderr, nil).Stream(nil),
	})
	_ = stdin.Close()
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	s.commands = append(s.commands, r)
	go r.feed(w, s.command.script(mark, s.machines, c.serves, c.which, c.sweep))
	s.watchers.Add(1)
	go r.watch()
	return r, nil
}

func (s *Started) told(r *running, i int, what said) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.places[i]
	switch what.word {
	case "up":
		p.up = true
		s.events <- event{machine: i}
	case "missing":
		s.fail(i, fmt.Sprintf("there is no program %s. Install it there at the same place, or give a path that all machines have", s.command.Args[0]))
	case "folder":
		s.fail(i, fmt.Sprintf("the working folder %s cannot be entered. Make it there, or choose one that all machines have", s.command.Dir))
	case "end":
		p.told++
		if p.told == 1 {
			p.status = what.number
		}
		if p.told == 2 && !p.ended {
			s.end(End{Machine: i, Status: p.status})
			r.endIfIdle()
		}
	}
}

// fail tells Start that a program could not be started. s is locked.
func (s *Started) fail(i int, why string) {
	if p := &s.places[i]; !p.failed && !p.up && !s.stopped {
		p.failed = true
		s.events <- event{machine: i, failed: why}
	}
}

// end reports the end of a program. s is locked.
func (s *Started) end(e End) {
	s.places[e.Machine].ended = true
	s.ends <- e
}

// lost reports a program as lost unless its end is known. s is not locked.
func (s *Started) lost(i int, reason func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := s.places[i]; {
	case p.ended:
		return
	case p.told > 0: // reported by one output; srun may drop the rest of the other
		s.end(End{Machine: i, Status: p.status})
		return
	}
	why := reason()
	s.fail(i, why)
	s.end(End{Machine: i, Lost: why})
}

func (s *Started) finish() {
	s.watchers.Wait()
	s.launcher.Close()
	close(s.ends)
	close(s.over)
}

// Ends returns a channel of how the programs end, each once and as soon as it has ended and all its
// output was written. The channel is closed after the last.
func (s *Started) Ends() <-chan End { return s.ends }

// Stop ends all programs: by SIGTERM and the end of their standard input, and after the grace by
// SIGKILL. It returns when all have ended or, with an error, when those that cannot be reached were
// given up. Nothing stays on machines that can be reached.
func (s *Started) Stop() error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	for _, r := range s.commands {
		r.close()
		if !r.reached() {
			r.kill()
		}
	}
	late := time.NewTimer(s.command.grace() + notice)
	defer late.Stop()
	select {
	case <-s.over:
		return nil
	case <-late.C:
	}
	var silent []Machine
	s.mu.Lock()
	for i, p := range s.places {
		if !p.ended {
			silent = append(silent, s.machines[i])
		}
	}
	s.mu.Unlock()
	for _, r := range s.commands {
		r.kill()
	}
	<-s.over
	if len(silent) > 0 {
		return fmt.Errorf("%s may still run on %s: nothing is heard from there any more. It is ended there when the machine notices that the connection is gone", s.command.Args[0], describe(silent))
	}
	return nil
}
