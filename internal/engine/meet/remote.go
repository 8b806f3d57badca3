package meet

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Remote is the proc at the other end of a temporary link, before the two sides know each other's
// worlds: the root of the other side. For core/message it is a world of one proc, named after the
// port. The process's lock guards it.
type Remote struct {
	p        *proc.Process
	q        *proc.Endpoint
	exchange construct.Exchange
	lost     bool // the link is gone
	Unneeded bool // this proc no longer needs the link
}

// Values that both ends of a temporary link use without an agreement.
const (
	callData                        = 8 << 10
	callAckMark                     = 4
	callHiWater                     = 16
	TemporaryContext wire.ContextID = 1<<64 - 16 // no communicator gets it
	introduction1                   = 1          // version of the first messages
	introductionSz                  = 8
	maxSwap                         = 2 * dynamic.MaxDescription
)

// invite makes the Remote at the other end of a link that was made at the port name. connecting
// says that this proc is the one that has connected.
func invite(p *proc.Process, l link.Link, name dynamic.WorldID, connecting bool) (*Remote, error) {
	opener, connecter := wire.Proc{Host: wire.HostID(name)}, wire.Proc{Host: wire.HostID(name)}
	connecter.Host[0] ^= 0x80
	self, other := opener, connecter
	if connecting {
		self, other = connecter, opener
	}
	first, err := p.Eng.AddWorld(message.ConnectedWorld{
		Host: other.Host, Size: 1, Self: self, MaxData: callData, AckMark: callAckMark, HiWater: callHiWater,
	})
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	g := &Remote{p: p}
	if g.q, err = p.Endpoints.Add(p.Trace.Traced(l, "met at a port", message.NoPeer), first); err != nil {
		p.Eng.ForgetWorld(first)
		_ = l.Close()
		return nil, err
	}
	p.Eng.SetRoute(first, g.q.ID)
	if p.Worlds.Remotes == nil {
		p.Worlds.Remotes = make(map[message.Peer]proc.Remote)
	}
	p.Worlds.Remotes[first] = g
	p.Worlds.TemporaryLinks++
	mine := wire.CommRank(p.Worlds.TemporaryLinks&(1<<26-1)) + 1
	g.exchange = construct.ExchangeOf(p, comm.NewGroup(comm.Proc(first), 1), message.Envelope{Context: TemporaryContext}, mine)
	return g, nil
}

// introduce exchanges first messages with the remote proc, which say the rank that each side has in
// the following ones. The first messages of all remote procs have the same envelope, so a goroutine
// that waits for one receives those of others too.
func (g *Remote) introduce(late *deadline) error {
	p := g.p
	b := binary.BigEndian.AppendUint32(nil, introduction1)
	sent := g.exchange.Isend(0, binary.BigEndian.AppendUint32(b, uint32(g.exchange.Base)))
	var theirs *proc.FirstMessage
	for theirs == nil && !g.lost && !late.over && p.Failure == nil {
		takeIntroductions(p)
		if theirs = p.Worlds.Introduced[g.q.Peer]; theirs == nil {
			p.AwaitProgress()
		}
	}
	if theirs == nil && late.over {
		p.Eng.Cancel(sent)
		p.Eng.Release(sent)
		return fmt.Errorf("%w: no message came from there within %v", proc.ErrCall, late.limit)
	}
	if theirs == nil {
		_, err := g.exchange.Done(sent)
		if err == nil {
			err = fmt.Errorf("%w before it sent anything", proc.ErrPeerGone)
		}
		return err
	}
	delete(p.Worlds.Introduced, g.q.Peer)
	if _, err := g.exchange.Done(sent); err != nil {
		return err
	}
	n, err := g.exchange.Done(theirs.R)
	if err != nil {
		return err
	}
	if v := binary.BigEndian.Uint32(theirs.B[:]); n != introductionSz || v != introduction1 {
		return fmt.Errorf("%w: the other side speaks version %d in %d bytes, want %d", comm.ErrMessage, v, n, introduction1)
	}
	g.exchange.Self.Rank = wire.CommRank(binary.BigEndian.Uint32(theirs.B[4:]) & (1<<27 - 1))
	return nil
}

func takeIntroductions(p *proc.Process) {
	for {
		m, status, ok := p.Eng.Take(message.Envelope{Context: TemporaryContext, Rank: 0}, message.NoPeer)
		if !ok {
			return
		}
		x := &proc.FirstMessage{}
		x.R = p.Eng.RecvMessage(m, x.B[:])
		if p.Worlds.Introduced == nil {
			p.Worlds.Introduced = make(map[message.Peer]*proc.FirstMessage)
		}
		p.Worlds.Introduced[status.Peer] = x
		p.WakeAll()
	}
}

// swap sends body, or the error bad instead, and returns what the other side sends. The messages'
// tag is the number of the step, which a trace shows.
func (g *Remote) swap(step Step, body []byte, bad error) ([]byte, error) {
	if g.lost {
		return nil, step.fault(cmp.Or(bad, proc.ErrPeerGone))
	}
	g.exchange.Self.Tag = wire.Tag(step)
	return swap(&g.exchange, 0, step, body, bad)
}

func swap(t *construct.Exchange, rank int, step Step, body []byte, bad error) ([]byte, error) {
	open := t.IsendSized(rank, status(bad, body))
	text, err := t.RecvSized(rank, maxSwap)
	if e := t.WaitSends(open); err == nil {
		err = e
	}
	if bad != nil {
		return nil, bad
	}
	if err == nil {
		text, err = outcome(text)
	}
	return text, step.fault(err)
}

// status returns a sized message with the error bad, or with a body if that is nil.
func status(bad error, body []byte) []byte {
	l := binary.BigEndian.AppendUint32(construct.NewSizedMessage(), construct.FaultCode(bad))
	if bad != nil {
		return l
	}
	return append(l, body...)
}

func outcome(text []byte) ([]byte, error) {
	if len(text) < 4 {
		return nil, fmt.Errorf("%w: %d bytes without a status", comm.ErrMessage, len(text))
	}
	if code := binary.BigEndian.Uint32(text); code != 0 {
		return nil, construct.FailedElsewhere(code)
	}
	return text[4:], nil
}

// leave ends this side of the link once all is written. When the other side has done so too, the
// remote proc is forgotten.
func (g *Remote) leave() {
	g.Unneeded = true
	if g.lost {
		g.forget()
	} else {
		g.p.Background.Dispatch(linkClosing{g})
	}
}

type linkClosing struct{ *Remote }

// CarryOn implements proc.BackgroundOp.
func (d linkClosing) CarryOn() bool {
	if !d.lost && d.p.Eng.HasOutput(d.q.ID) {
		return false // a send may be done before its packet has left
	}
	if !d.lost {
		d.q.CloseSend()
	}
	return true
}

// LinkClosed implements proc.Remote. The remote proc is forgotten if this side has left already.
func (g *Remote) LinkClosed() {
	g.lost = true
	if g.Unneeded {
		g.forget()
	}
}

func (g *Remote) forget() {
	delete(g.p.Worlds.Remotes, g.q.Peer)
	delete(g.p.Worlds.Introduced, g.q.Peer)
	g.p.Eng.ForgetWorld(g.q.Peer)
}
