package mpi

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports/trace"
)

// OpenPort opens a port and gives its name: a line of printable text, which is all
// that somebody needs to connect. It is a capability: who has it gets in. The port
// is the calling proc's, and ends with it (MPI_Open_port).
//
// The info key lifetime says after how many seconds the port closes by itself: who
// calls it then, waits there or accepts there is refused. The key backlog says how
// many who call may wait to be accepted (256); the next one is refused.
func OpenPort(info *Info) (string, error) {
	p, err := current()
	if err != nil {
		return "", failed("OpenPort", err)
	}
	return p.openPort(info)
}

// ClosePort closes a port. Who waits there, or is to be accepted there, is refused
// (MPI_Close_port). Communicators that were made by it stay.
func ClosePort(name string) error {
	p, err := current()
	if err != nil {
		return failed("ClosePort", err)
	}
	return p.closePort(name)
}

func (p *process) openPort(info *Info) (string, error) {
	hints, err := snapshot(info)
	if err != nil {
		return "", p.failed("OpenPort", err)
	}
	x, err := portHints(hints)
	if err != nil {
		return "", p.failed("OpenPort", err)
	}
	p.lock()
	name, err := p.makePortAs(x)
	p.unlock()
	return name, p.failed("OpenPort", err)
}

// maxBacklog is the largest backlog that can be asked for.
const maxBacklog = 4096

// portHints takes the info keys of ports.
func portHints(hints *Info) (x wireup.Meeting, err error) {
	if x.Timeout, err = seconds(hints, "lifetime"); err != nil || hints == nil {
		return x, err
	}
	v, ok, err := hints.value("backlog")
	if err != nil || !ok {
		return x, err
	}
	if x.Backlog, err = strconv.Atoi(v); err != nil || x.Backlog < 1 || x.Backlog > maxBacklog {
		return x, fmt.Errorf("%w: backlog %q is no number from 1 to %d", ErrInfoValue, v, maxBacklog)
	}
	return x, nil
}

// makePort is openPort for a locked process. A lifetime of 0 has no end.
func (p *process) makePort(lifetime time.Duration) (string, error) {
	return p.makePortAs(wireup.Meeting{Timeout: lifetime})
}

// makePortAs is makePort with what portHints gives.
//
// Step 0 of connecting.
func (p *process) makePortAs(x wireup.Meeting) (string, error) {
	if err := p.mayMeet(); err != nil {
		return "", err
	}
	card, err := dynamic.ParseCard([]byte(p.job.Card))
	if err != nil {
		return "", fmt.Errorf("%w: its own card: %w", ErrAlone, err)
	}
	port := dynamic.Port{Opener: dynamic.Member{World: p.description.World, Rank: p.job.Rank}, Card: card}
	p.random(port.Key[:])
	name, err := port.AppendText(nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrAlone, err)
	}
	x.Key = port.Key[:]
	if _, err := p.ask(wireup.Message{Kind: wireup.KindPort, Meeting: &x}, dynamic.World{}); err != nil {
		return "", err // nobody could call it yet, or ever
	}
	if p.doors == nil {
		p.doors = make(map[string]dynamic.Token)
	}
	p.doors[string(name)] = port.Key
	p.opened(port.Name())
	return string(name), nil
}

// random fills b with what nobody can guess.
func (p *process) random(b []byte) {
	if r, ok := p.machine.(machine.Random); ok {
		r.Random(b)
		return
	}
	_, _ = rand.Read(b) // never fails
}

// mayMeet refuses where no other jobs can be met.
func (p *process) mayMeet() error {
	switch {
	case p.failure != nil:
		return p.failure
	case phase(p.state.Load()) >= finalizing:
		return ErrFinalized
	case p.description == nil || p.control == nil:
		return ErrAlone
	}
	return nil
}

func (p *process) closePort(name string) error {
	p.lock()
	err := p.shutPort(name)
	p.unlock()
	return p.failed("ClosePort", err)
}

func (p *process) shutPort(name string) error {
	key, err := p.door(name)
	if err != nil {
		return err
	}
	delete(p.doors, strings.TrimSpace(name))
	for number, q := range p.asking { // who accepts there
		if q.port == key.World() && q.answer == nil {
			m := wireup.Message{Kind: wireup.KindTake, Meeting: &wireup.Meeting{Request: number, Cancel: true}}
			if err := p.control.Send(m); err != nil {
				return err
			}
		}
	}
	return p.control.Send(wireup.Message{Kind: wireup.KindUnport, Meeting: &wireup.Meeting{Key: key[:]}})
}

// door gives the key of a port of this proc.
func (p *process) door(name string) (dynamic.Token, error) {
	if err := p.mayMeet(); err != nil {
		return dynamic.Token{}, err
	}
	key, ok := p.doors[strings.TrimSpace(name)]
	if !ok {
		return key, fmt.Errorf("%w: this proc has no such port open", dynamic.ErrPort)
	}
	return key, nil
}

// opened shows a step that has no run of a procedure: that a port is open.
func (p *process) opened(name dynamic.World) {
	if t := p.tracing(); t != nil {
		t.step(trace.Step{Procedure: toAccept, Number: int(stepOpen), Text: portLabel(name) + " is open"})
	}
}
