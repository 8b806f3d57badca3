package mpi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/wireup"
)

// maxSpawned is the most procs that one call asks for: all members are told of each.
const maxSpawned = 1 << 13

// Command is a program that Spawn starts.
type Command struct {
	Path  string   // a name without a slash is looked up; a relative path starts from the program's folder of the job file
	Args  []string // without the name of the program
	Procs int      // at least 1
	Info  *Info    // nil: none
}

// spawnStep is a step of spawning, as errors name it.
type spawnStep int

// The steps. Those of Accept come between the last two, on the parents' side, and those
// of Connect in Init of the children.
const (
	spawnPort    spawnStep = 1 + iota // The root opens a port
	spawnStart                        // and has its node start the procs, which are told the port.
	spawnTell                         // It tells the other members whether they run,
	spawnTellHow                      // how many of them,
	spawnTellWho                      // and which, all in one message.
	spawnConnect                      // All members accept at the port.
	spawnClose                        // It is closed.
)

func (s spawnStep) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("step %d of spawning: %w", s, err)
}

// Spawn starts procs of a program as a world of their own, and makes an
// intercommunicator of c's group and theirs (MPI_Comm_spawn). They find it with Parent.
// All members of c, an intracommunicator, call it; command matters at the root only.
// It blocks until all procs have called Init.
//
// codes has an error class for each of the procs that were asked for: Success for
// those that run. Where the spawn fails none runs: the class is Spawn then for the procs
// that are to blame.
//
// Info keys: host, a site of the job or an address of one of its hosts, where the procs
// are started instead of the root's own; wdir, their working folder; path, folders
// separated by colons where a name without a slash is looked for; arch, the
// architecture that the machine must have; env, lines NAME=value for their
// environment; soft, how many procs will do, as numbers and ranges like 2:8:2,11.
func (c *Comm) Spawn(command Command, root int) (children *Comm, codes []Class, err error) {
	children, codes, err = c.spawn([]Command{command}, root)
	return children, codes, c.failed("Spawn", err)
}

// SpawnMultiple is Spawn of several programs, whose procs are one world, in the order
// of commands (MPI_Comm_spawn_multiple). The attribute AppNum tells them which one is
// theirs.
func (c *Comm) SpawnMultiple(commands []Command, root int) (children *Comm, codes []Class, err error) {
	children, codes, err = c.spawn(commands, root)
	return children, codes, c.failed("SpawnMultiple", err)
}

// outcomeOfSpawn is what the root tells the others.
type outcomeOfSpawn struct {
	Class  Class   `json:"class"`
	Reason string  `json:"reason,omitempty"`
	Codes  []Class `json:"codes,omitempty"`
}

func (c *Comm) spawn(commands []Command, root int) (*Comm, []Class, error) {
	if err := c.mayConnect(root, "Spawn"); err != nil {
		return nil, nil, err
	}
	p := c.p
	p.lock()
	defer p.unlock()
	var s spawning
	if c.Rank() == root {
		s.order, s.err = orderOf(commands)
	}
	if err := p.mayMeet(); err != nil {
		return nil, nil, errorsFirst(s.err, err)
	}
	m := c.newMeeting(root)
	defer p.endMeeting()
	s.shown = p.procedure(toSpawn)
	s.shown.says(func() string {
		return fmt.Sprintf("begins, rank %d of %d, root %d, context %d", c.Rank(), c.Size(), root, c.Context())
	})
	if c.Rank() == root {
		p.begin(&s)
	}
	made, codes, err := m.spawn(&s)
	p.finishSpawn(&s, m.worlds, err)
	if c.Rank() != root {
		s.shown.took(int(spawnClose), func() string { return "Spawn returns" })
	}
	s.shown.ends(err, made)
	return made, codes, err
}

// spawn connects with the procs that the root has started, if it has.
func (m *meeting) spawn(s *spawning) (made *Comm, codes []Class, err error) {
	if codes, err = m.tellOfSpawn(s); err != nil {
		return nil, codes, err
	}
	m.show(toAccept)
	if m.c.Rank() == m.root {
		err = m.reach(s.port, nil, false)
	}
	if made, err = m.complete(err); err != nil {
		return nil, codes, spawnConnect.fault(fmt.Errorf("%w: %w", ErrSpawn, err))
	}
	s.shown.took(int(spawnConnect), func() string { return "connected with them" })
	return made, codes, nil
}

// spawning is what the root of a spawn knows of it.
type spawning struct {
	outcomeOfSpawn
	order   *wireup.Spawn
	err     error
	shown   *procedure
	port    string
	request uint64 // to the node; 0: none
}

// begin opens the port and has the node start the procs.
func (p *process) begin(s *spawning) {
	if s.err == nil {
		s.port, s.err = p.makePort(0)
		s.err = spawnPort.fault(s.err)
	}
	if s.err == nil {
		s.shown.took(int(spawnPort), func() string { return portLabelOf(s.port) + " is for the procs to be started" })
	}
	if s.err == nil {
		var d delivery
		question := wireup.Message{Kind: wireup.KindSpawn, Meeting: &wireup.Meeting{Port: s.port, Spawn: s.order}}
		d, s.err = p.ask(question, dynamic.World{})
		s.err = spawnStart.fault(s.err)
		if s.err == nil {
			s.shown.took(int(spawnStart), func() string { return "the node has started them" })
		}
		if m := d.msg.Meeting; m != nil {
			s.request = m.Request
			for _, code := range m.Codes {
				s.Codes = append(s.Codes, Class(code))
			}
		}
	}
	s.Class = ErrorClass(s.err)
	if s.err != nil {
		s.Reason = s.err.Error()
	}
}

// orderOf checks the commands and puts them as the node wants them.
func orderOf(commands []Command) (*wireup.Spawn, error) {
	if len(commands) == 0 {
		return nil, fmt.Errorf("%w: no command", ErrArg)
	}
	x, total := &wireup.Spawn{}, 0
	for i, c := range commands {
		hints, err := snapshot(c.Info)
		switch {
		case err != nil:
			return nil, fmt.Errorf("command %d: %w", i, err)
		case c.Path == "":
			return nil, fmt.Errorf("%w: command %d has no path", ErrArg, i)
		case c.Procs < 1 || c.Procs > maxSpawned-total:
			return nil, fmt.Errorf("%w: command %d of %d procs; 1 to %d are possible in all", ErrArg, i, c.Procs, maxSpawned)
		case strings.ContainsRune(c.Path+strings.Join(c.Args, ""), 0):
			return nil, fmt.Errorf("%w: command %d has a zero byte", ErrArg, i)
		}
		total += c.Procs
		y := wireup.Command{Path: c.Path, Args: c.Args, Procs: c.Procs}
		if hints != nil {
			y.Info = make(map[string]string)
			for _, pair := range hints.pairs {
				y.Info[pair.key] = pair.value
			}
		}
		x.Commands = append(x.Commands, y)
	}
	return x, nil
}

// tellOfSpawn tells all members what the root knows of the procs.
func (m *meeting) tellOfSpawn(s *spawning) ([]Class, error) {
	own := m.c.Rank() == m.root
	var text []byte
	var err error
	if own {
		text, err = json.Marshal(&s.outcomeOfSpawn)
	}
	text, err = m.share(0, text, err)
	if err == nil && !own {
		err = json.Unmarshal(text, &s.outcomeOfSpawn)
	}
	switch {
	case err != nil:
		return nil, spawnTell.fault(fmt.Errorf("%w: %w", ErrSpawn, err))
	}
	s.tookNews()
	switch {
	case own:
		return s.Codes, s.err
	case s.Class != mpierr.Success:
		return s.Codes, fmt.Errorf("told by the root: %w: %s", sentinelOf(s.Class), s.Reason)
	}
	return s.Codes, nil
}

// tookNews shows what all members have been told.
func (s *spawning) tookNews() {
	s.shown.took(int(spawnTell), func() string { return fmt.Sprintf("known to all members: %v", s.Class) })
	s.shown.took(int(spawnTellHow), func() string {
		running := 0
		for _, c := range s.Codes {
			if c == mpierr.Success {
				running++
			}
		}
		return fmt.Sprintf("known to all members: %d run", running)
	})
	s.shown.took(int(spawnTellWho), func() string {
		return fmt.Sprintf("known to all members: the codes of %d procs that were asked for", len(s.Codes))
	})
}

// sentinelOf is the error of members that the root has told of a class.
func sentinelOf(class Class) error {
	for _, e := range []error{ErrArg, ErrInfo, ErrAlone} {
		if ErrorClass(e) == class {
			return e
		}
	}
	return ErrSpawn
}

// finishSpawn closes the port, and tells the node that the procs are of no use if it
// has come to nothing. Otherwise it remembers how the node calls them.
func (p *process) finishSpawn(s *spawning, met []*dynamic.Description, err error) {
	if s.port == "" || p.failure != nil {
		return
	}
	switch {
	case err != nil && s.request != 0:
		_ = p.control.Send(wireup.Message{Kind: wireup.KindSpawn, Meeting: &wireup.Meeting{Request: s.request, Cancel: true}})
	case err == nil:
		if w := p.known(met[0].World); w != nil {
			w.spawn = s.request
		}
	}
	_ = p.shutPort(s.port) // without a node there is no port either
	s.shown.took(int(spawnClose), func() string { return portLabelOf(s.port) + " is closed" })
}
