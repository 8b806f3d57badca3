package meet

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

// reach makes the temporary link. The connecting root has a limited time until it is accepted; the
// accepting root goes on to the next connection if one was closed or sends nothing.
func (m *Meeting) reach(port string, info *proc.Info, connecting bool) error {
	hints, err := construct.Snapshot(info)
	if err != nil {
		return err
	}
	limit, err := seconds(hints, "timeout")
	if err != nil {
		return err
	}
	if limit > 0 {
		m.late = newDeadline(m.P, limit, m.cut)
	} else {
		limit = connectLimit
	}
	if connecting {
		return m.reachOut(port, limit)
	}
	for m.peer == nil {
		name, d, err := m.acceptConnection(port)
		if err != nil {
			return err
		}
		late := newDeadline(m.P, connectLimit, nil)
		err = m.welcome(d, name, false, late)
		late.stop()
		if err != nil && (m.P.Failure != nil || m.overdue()) {
			return m.because(err)
		}
	}
	return nil
}

func (m *Meeting) reachOut(port string, limit time.Duration) error {
	late := newDeadline(m.P, limit, nil)
	defer late.stop()
	opener, name, d, err := m.connectToPort(port, limit)
	if err == nil {
		err = m.welcome(d, name, true, late)
	}
	if err != nil || opener != m.P.Worlds.Member(comm.Proc(m.P.Job.Rank)) {
		return err
	}
	_, err = m.remoteRoot.swap(StepSizes, nil, stepTemporary.fault(fmt.Errorf("%w: the port is this proc's own, and it cannot be in both groups", comm.ErrComm)))
	return err
}

// cut ends what the root waits for, at its node or from the other side, because the time is over.
func (m *Meeting) cut() {
	if m.accepting != 0 {
		_ = m.P.Node.Control.Send(wireup.Message{Kind: wireup.KindAccept, Meeting: &wireup.OtherWorld{Request: m.accepting, Cancel: true}})
	}
	if m.peer != nil && !m.peer.lost && !m.peer.Unneeded {
		m.peer.q.Drop(proc.ErrCall)
	}
}

func (m *Meeting) overdue() bool { return m.late != nil && m.late.over }

func (m *Meeting) because(err error) error {
	if err == nil || !m.overdue() {
		return err
	}
	return fmt.Errorf("%w: the two sides have not connected for %v: %s", proc.ErrCall, m.late.limit, err.Error())
}

func (m *Meeting) welcome(d proc.LinkMessage, name dynamic.WorldID, connecting bool, late *deadline) error {
	if d.L == nil {
		return stepTemporary.fault(fmt.Errorf("%w: an answer without a link", proc.ErrNode))
	}
	g, err := invite(m.P, d.L, name, connecting)
	if err != nil {
		return stepTemporary.fault(err)
	}
	if err := g.introduce(late); err != nil {
		g.leave()
		return stepTemporary.fault(err)
	}
	m.peer, m.remoteRoot = g, g
	m.TraceStep(stepTemporary, func() string {
		return fmt.Sprintf("both roots have a temporary link, with context %d; this one is %d there, the other %d", TemporaryContext, g.exchange.Base, g.exchange.Self.Rank)
	})
	return nil
}

// deadline is a time limit of a wait. The process's lock guards it.
type deadline struct {
	timer machine.Timer
	limit time.Duration
	over  bool
}

// newDeadline starts a time limit; when it has passed, then is called, unless it is nil.
func newDeadline(p *proc.Process, limit time.Duration, then func()) *deadline {
	d := &deadline{limit: limit}
	d.timer = p.Machine.AfterFunc(limit, func() {
		p.Lock()
		d.over = true
		if then != nil {
			then()
		}
		p.WakeAll()
		p.Unlock()
	})
	return d
}

func (d *deadline) stop() { d.timer.Stop() }

func (m *Meeting) connectToPort(text string, limit time.Duration) (opener dynamic.WorldProc, name dynamic.WorldID, d proc.LinkMessage, err error) {
	port, err := dynamic.ParsePort(text)
	if err != nil {
		return opener, name, d, stepDial.fault(err)
	}
	card, err := port.Card.AppendText(nil)
	if err != nil {
		return opener, name, d, stepDial.fault(err)
	}
	x := &wireup.OtherWorld{Key: port.Key[:], Card: string(card), Timeout: limit}
	m.TraceStep(stepDial, func() string { return fmt.Sprintf("calls %s of %v", proc.PortLabel(port.Name()), port.Opener) })
	d, err = m.P.Node.Ask(wireup.Message{Kind: wireup.KindConnect, Meeting: x}, dynamic.WorldID{})
	if err == nil {
		m.TraceStep(stepGreet, func() string { return "let in, by " + d.Msg.Transport })
	}
	return port.Opener, port.Name(), d, stepGreet.fault(err)
}

func (m *Meeting) acceptConnection(text string) (name dynamic.WorldID, d proc.LinkMessage, err error) {
	key, err := portKey(m.P, text)
	if err != nil {
		return name, d, stepAccept.fault(err)
	}
	name, m.accepting = key.World(), m.P.Node.Questions+1 // the number that Ask will assign to the request
	defer func() { m.accepting = 0 }()
	m.Steps.TraceText(func() string { return "waits for a connection to " + proc.PortLabel(name) })
	d, err = m.P.Node.Ask(wireup.Message{Kind: wireup.KindAccept, Meeting: &wireup.OtherWorld{Key: key[:]}}, name)
	if err == nil {
		m.TraceStep(stepQueue, func() string { return fmt.Sprintf("a connection waited %v at the node", d.Msg.Meeting.Waited) })
		m.TraceStep(stepAccept, func() string { return fmt.Sprintf("accepts the connection, which came by %s", d.Msg.Transport) })
	}
	return name, d, m.because(stepAccept.fault(err))
}
