package mpi

import (
	"errors"
	"fmt"
	"os"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports/socket"
)

// listen reads what the node says after the welcome, in a goroutine of its own
// that sleeps nearly always. It never takes the process's lock: links are left
// in the inbox, for whoever makes progress.
func (p *process) listen() {
	for {
		m, fds, err := p.control.Recv()
		if err != nil {
			p.nodeGone(err)
			return
		}
		switch m.Kind {
		case wireup.KindLink:
			p.deliver(m, fds)
		case wireup.KindDown:
			wireup.CloseAll(fds)
			// MPI_Abort ends every proc of the job. The node reports why.
			os.Exit(exitDown)
		default:
			wireup.CloseAll(fds) // a newer node's message that we do not need
		}
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
	os.Exit(exitDown)
}

func (p *process) deliver(m wireup.Message, fds []int) {
	d := delivery{msg: m}
	if len(fds) > 0 {
		l, err := socket.New(fds[0], nil)
		wireup.CloseAll(fds[1:])
		if err != nil {
			d.msg.Reason = err.Error()
		} else {
			d.l = l
		}
	}
	p.inboxLock.Lock()
	p.inbox = append(p.inbox, d)
	p.inboxLock.Unlock()
	p.news.Store(true)
	p.waker.Wake()
}

// takeDeliveries puts the links that the node gave us to use.
func (p *process) takeDeliveries() bool {
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
	peer := message.Peer(d.msg.Peer)
	if int(peer) < 0 || int(peer) >= len(p.job.Procs) {
		if d.l != nil {
			_ = d.l.Close()
		}
		return
	}
	route := agentLink
	if d.l != nil {
		q, err := p.addPort(p.traced(d.l, fmt.Sprintf("%s to %d", d.msg.Transport, peer)), peer)
		if err != nil {
			_ = d.l.Close()
		} else {
			route = q.id
		}
	}
	if _, ok := p.eng.Route(peer); !ok {
		p.eng.SetRoute(peer, route)
	}
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
var (
	// ErrJobOver is wrapped by whatever is reported once the job cannot go on.
	ErrJobOver = errors.New("the job is over")
	// ErrPeerGone means that the other side of a link ended in the middle.
	ErrPeerGone = errors.New("peer is gone")
)
