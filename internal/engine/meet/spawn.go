package meet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// MaxSpawned is the maximum number of procs that one call may ask for: all members get an error
// code for each.
const MaxSpawned = 1 << 13

// Command is a program that Spawn starts (MPI-4.1, 11.8.3).
type Command struct {
	Path  string     // a name without a slash is looked up; a relative path starts from the program's folder of the job file
	Args  []string   // without the name of the program
	Procs int        // at least 1
	Info  *proc.Info // nil: none
}

type spawnStep int

// The steps. The steps of Accept come between the last two, on the parents' side, and the steps of
// Connect in Init of the children.
const (
	spawnPort    spawnStep = 1 + iota // The root opens a port
	spawnStart                        // and makes its node start the procs, which get the port.
	spawnTell                         // It reports to the other members whether they run,
	spawnTellHow                      // their number,
	spawnTellWho                      // and their ranks, all in one message.
	spawnConnect                      // All members accept at the port.
	spawnClose                        // The port is closed.
)

func (s spawnStep) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("step %d of spawning: %w", s, err)
}

type outcomeOfSpawn struct {
	Class  proc.Class   `json:"class"`
	Reason string       `json:"reason,omitempty"`
	Codes  []proc.Class `json:"codes,omitempty"`
}

// Spawn starts procs in a world of their own and connects the members of c with them (MPI-4.1,
// 11.8.2 and 11.8.3). The commands matter at the root only; codes has one for each proc that was
// asked for.
func Spawn(c *proc.Comm, commands []Command, root int) (*proc.Comm, []proc.Class, error) {
	if err := mayConnect(c, root, "Spawn"); err != nil {
		return nil, nil, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	var s spawning
	if c.Rank() == root {
		s.order, s.err = orderOf(commands)
	}
	if err := mayMeetTogether(c); err != nil {
		return nil, nil, cmp.Or(s.err, err)
	}
	m := newMeeting(c, root)
	defer p.Disconnects.EndMeeting()
	s.shown = p.Trace.Procedure(proc.ToSpawn)
	s.shown.TraceText(func() string {
		return fmt.Sprintf("begins, rank %d of %d, root %d, context %d", c.Rank(), c.Size(), root, c.Context())
	})
	if c.Rank() == root {
		begin(p, &s)
	}
	made, codes, err := m.spawn(&s)
	finishSpawn(p, &s, m.worlds, err)
	if c.Rank() != root {
		s.shown.TraceStep(int(spawnClose), func() string { return "Spawn returns" })
	}
	s.shown.TraceEnd(err, made)
	return made, codes, err
}

func (m *Meeting) spawn(s *spawning) (made *proc.Comm, codes []proc.Class, err error) {
	if codes, err = m.tellOfSpawn(s); err != nil {
		return nil, codes, err
	}
	m.show(proc.ToAccept)
	if m.C.Rank() == m.Root {
		err = m.reach(s.port, nil, false)
	}
	if made, err = m.complete(err); err != nil {
		return nil, codes, spawnConnect.fault(fmt.Errorf("%w: %w", proc.ErrSpawn, err))
	}
	s.shown.TraceStep(int(spawnConnect), func() string { return "connected with them" })
	return made, codes, nil
}

type spawning struct {
	outcomeOfSpawn
	order   *wireup.Spawn
	err     error
	shown   *proc.TraceSteps
	port    string
	request uint64 // number of the request to the node; 0: none
}

func begin(p *proc.Process, s *spawning) {
	if s.err == nil {
		s.port, s.err = makePort(p, 0)
		s.err = spawnPort.fault(s.err)
	}
	if s.err == nil {
		s.shown.TraceStep(int(spawnPort), func() string { return proc.PortLabelOf(s.port) + " is for the procs to be started" })
	}
	if s.err == nil {
		var d proc.LinkMessage
		question := wireup.Message{Kind: wireup.KindSpawn, Meeting: &wireup.OtherWorld{Port: s.port, Spawn: s.order}}
		d, s.err = p.Node.Ask(question, dynamic.WorldID{})
		s.err = spawnStart.fault(s.err)
		if s.err == nil {
			s.shown.TraceStep(int(spawnStart), func() string { return "the node has started them" })
		}
		if m := d.Msg.Meeting; m != nil {
			s.request = m.Request
			for _, code := range m.Codes {
				s.Codes = append(s.Codes, proc.Class(code))
			}
		}
	}
	s.Class = proc.ErrorClass(s.err)
	if s.err != nil {
		s.Reason = s.err.Error()
	}
}

func orderOf(commands []Command) (*wireup.Spawn, error) {
	if len(commands) == 0 {
		return nil, fmt.Errorf("%w: no command", proc.ErrArg)
	}
	x, total := &wireup.Spawn{}, 0
	for i, c := range commands {
		hints, err := construct.Snapshot(c.Info)
		switch {
		case err != nil:
			return nil, fmt.Errorf("command %d: %w", i, err)
		case c.Path == "":
			return nil, fmt.Errorf("%w: command %d has no path", proc.ErrArg, i)
		case c.Procs < 1 || c.Procs > MaxSpawned-total:
			return nil, fmt.Errorf("%w: command %d of %d procs; 1 to %d are possible in all", proc.ErrArg, i, c.Procs, MaxSpawned)
		case strings.ContainsRune(c.Path+strings.Join(c.Args, ""), 0):
			return nil, fmt.Errorf("%w: command %d has a zero byte", proc.ErrArg, i)
		}
		total += c.Procs
		y := wireup.Command{Path: c.Path, Args: c.Args, Procs: c.Procs}
		if hints != nil {
			y.Info = make(map[string]string)
			for _, pair := range *hints.Pairs() {
				y.Info[pair.Key] = pair.Value
			}
		}
		x.Commands = append(x.Commands, y)
	}
	return x, nil
}

// tellOfSpawn has the root tell all members how the spawn went, with the codes of the procs
// (MPI-4.1, 11.8.2).
func (m *Meeting) tellOfSpawn(s *spawning) ([]proc.Class, error) {
	own := m.C.Rank() == m.Root
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
		return nil, spawnTell.fault(fmt.Errorf("%w: %w", proc.ErrSpawn, err))
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

func (s *spawning) tookNews() {
	s.shown.TraceStep(int(spawnTell), func() string { return fmt.Sprintf("known to all members: %v", s.Class) })
	s.shown.TraceStep(int(spawnTellHow), func() string {
		running := 0
		for _, c := range s.Codes {
			if c == mpierr.Success {
				running++
			}
		}
		return fmt.Sprintf("known to all members: %d run", running)
	})
	s.shown.TraceStep(int(spawnTellWho), func() string {
		return fmt.Sprintf("known to all members: the codes of %d procs that were asked for", len(s.Codes))
	})
}

// sentinelOf returns the error of members to which the root has sent an error class.
func sentinelOf(class proc.Class) error {
	for _, e := range []error{proc.ErrArg, proc.ErrInfo, proc.ErrAlone} {
		if proc.ErrorClass(e) == class {
			return e
		}
	}
	return proc.ErrSpawn
}

// finishSpawn closes the port. After an error it tells the node that the procs are not needed;
// otherwise it keeps the node's number of their world.
func finishSpawn(p *proc.Process, s *spawning, met []*dynamic.Description, err error) {
	if s.port == "" || p.Failure != nil {
		return
	}
	switch {
	case err != nil && s.request != 0:
		_ = p.Node.Control.Send(wireup.Message{Kind: wireup.KindSpawn, Meeting: &wireup.OtherWorld{Request: s.request, Cancel: true}})
	case err == nil:
		if w := p.Worlds.Known(met[0].World); w != nil {
			w.Spawn = s.request
		}
	}
	_ = shutPort(p, s.port) // there is no port without a node
	s.shown.TraceStep(int(spawnClose), func() string { return proc.PortLabelOf(s.port) + " is closed" })
}
