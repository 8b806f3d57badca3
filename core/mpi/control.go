package mpi

import (
	"errors"
	"fmt"
	"os"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/relay"
	"github.com/openimpi/impi/transports/ring"
	"github.com/openimpi/impi/transports/socket"
)

// nodeConn is the connection to the node of a program that a node started.
type nodeConn struct{ *wireup.Conn }

// Send sends a message without descriptors.
func (c nodeConn) Send(m wireup.Message) error { return c.Conn.Send(m) }

// listen reads what the node says after the welcome, in a goroutine of its own
// that sleeps nearly always.
func (p *process) listen(node nodeConn) {
	for {
		m, fds, err := node.Recv()
		if err != nil {
			p.nodeGone(err)
			return
		}
		var l link.Link
		if brings(m.Kind) && len(fds) > 0 {
			if l, err = received(m, fds); err != nil {
				m.Reason = err.Error()
			}
			fds = nil
		}
		wireup.CloseAll(fds)
		p.hear(m, l)
	}
}

// brings tells whether a link may come with a message.
func brings(k wireup.Kind) bool {
	return k == wireup.KindLink || k == wireup.KindCaller || k == wireup.KindCalled
}

// received is openLink, but that a connection of a resumable link which broke on its
// way here is one that is broken: its user asks for another.
func received(m wireup.Message, fds []int) (link.Link, error) {
	l, err := openLink(m, fds)
	switch {
	case err == nil:
		return l, nil
	case m.Resumable == nil || errors.Is(err, ErrNode):
		return nil, err
	}
	return lostLink{fmt.Errorf("%w: %w", link.ErrBroken, err)}, nil
}

// lostLink is a link that broke before it could be used.
type lostLink struct{ why error }

func (l lostLink) Send([][]byte) (int, error) { return 0, l.why }
func (l lostLink) Recv([][]byte) (int, error) { return 0, l.why }
func (lostLink) Handle() int                  { return link.NoHandle }
func (lostLink) Arm(link.Interest) bool       { return true }
func (lostLink) Limits() link.Limits          { return link.Limits{} }
func (l lostLink) CloseSend() error           { return l.why }
func (lostLink) Close() error                 { return nil }

// openLink makes a link of the descriptors that came with a KindLink, and owns
// them.
func openLink(m wireup.Message, fds []int) (link.Link, error) {
	switch plane := transports.DataPlane(m.DataPlane); {
	case plane == transports.PlanePeerSHM && len(fds) == 2:
		return openRing(fds[0], fds[1], m.Side)
	case plane == transports.PlaneRing && len(fds) == 2:
		return relay.NewRing(fds[0], fds[1], m.Side, m.Transport)
	case (plane == transports.PlaneStream || plane == transports.PlaneGRPC) && len(fds) == 2:
		return relay.NewStream(fds[0], fds[1], plane, m.Transport)
	case (plane == transports.PlaneFD || plane == "") && len(fds) == 1:
		return socket.New(fds[0], nil)
	}
	wireup.CloseAll(fds)
	return nil, fmt.Errorf("%w: a link by data plane %q with %d descriptors", ErrNode, m.DataPlane, len(fds))
}

// openRing makes a link of memory that is shared with the proc at the other end.
func openRing(region, sock, side int) (link.Link, error) {
	l, err := ring.New(region, sock, side)
	if err != nil {
		return nil, err
	}
	if err := l.AllowLending(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// hear takes a message of the node's. It never takes the process's lock: links
// are left in the inbox, for whoever makes progress.
func (p *process) hear(m wireup.Message, l link.Link) {
	switch m.Kind {
	case wireup.KindLink, wireup.KindCaller, wireup.KindCalled, wireup.KindPort, wireup.KindNamed, wireup.KindSpawned:
		p.inboxLock.Lock()
		p.inbox = append(p.inbox, delivery{m, l})
		p.inboxLock.Unlock()
		p.news.Store(true)
		p.links.Wake()
	case wireup.KindDown:
		// MPI_Abort ends every proc of the job. The node reports why.
		p.machine.Exit(exitDown)
	case wireup.KindStats:
		if p.asked.CompareAndSwap(false, true) {
			go p.describe() // which takes the lock
		}
	default: // a newer node's message that we do not need
	}
}

// exitDown is the exit status of a proc that ends because the job does.
const exitDown = 1

// nodeGone ends a proc whose node died: nobody would stop it otherwise.
func (p *process) nodeGone(err error) {
	if phase(p.state.Load()) >= finalizing {
		return
	}
	fmt.Fprintf(os.Stderr, "impi: rank %d: the node of this rank is gone (%v); ending\n", p.job.Rank, err)
	p.machine.Exit(exitDown)
}

// takeDeliveries puts the links that the node gave us to use.
func (p *process) takeDeliveries() (progress bool) {
	p.inboxLock.Lock()
	inbox := p.inbox
	p.inbox = nil
	p.news.Store(false)
	p.inboxLock.Unlock()
	for _, d := range inbox {
		p.take(d)
	}
	return len(inbox) > 0
}

func (p *process) take(d delivery) {
	switch {
	case d.msg.Kind != wireup.KindLink:
		p.answered(d)
		return
	case d.msg.Meeting != nil && len(d.msg.Meeting.World) > 0:
		p.takeStranger(d)
		return
	}
	peer := message.Peer(d.msg.Peer)
	if int(peer) < 0 || int(peer) >= len(p.job.Procs) {
		if d.l != nil {
			_ = d.l.Close()
		}
		return
	}
	if d.msg.Resumable != nil && d.msg.Resumable.Again {
		p.again(&d, peer)
		return
	}
	route := agentLink
	if d.l != nil {
		q, err := p.linkTo(&d, peer)
		if err != nil {
			_ = d.l.Close()
		} else {
			route = q.id
		}
	}
	if _, ok := p.eng.Route(peer); !ok {
		p.route(peer, route)
	}
}

// linkTo makes a port of a link that the node gave us.
func (p *process) linkTo(d *delivery, peer message.Peer) (*port, error) {
	if d.msg.Resumable != nil {
		return p.addResumable(d, peer)
	}
	return p.addPort(p.traced(d.l, fmt.Sprintf("%s to %d", d.msg.Transport, peer), peer), peer)
}

// openDirect asks the node for a direct link to peer. False means that packets
// go through the agent.
func (p *process) openDirect(peer message.Peer) bool {
	if p.control == nil || p.job.Procs[peer].Path != wireup.PathDirect {
		return false
	}
	err := p.control.Send(wireup.Message{Kind: wireup.KindOpen, Peer: rank(peer)})
	return err == nil
}

// fail ends the job for this proc: every wait returns err from now on.
func (p *process) fail(err error) {
	if p.failure == nil {
		p.failure = fmt.Errorf("%w: %w", ErrJobOver, err)
		p.rouse()
	}
}

// The faults of the job itself.
var ()
