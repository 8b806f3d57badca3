package procs

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
)

const controlFD = 3

// drainLimit is how long the control socket of a proc that has exited is read. Only a descendant
// that has left the proc's process group can keep it open for so long.
const drainLimit = time.Second

// Proc is one process of the site.
type Proc struct {
	Local int // its number at the site
	Host  int // index of its host at the site

	AppNum int // of a proc that has joined: the number of its program

	number     int64 // among all that this process has started
	set        *Set
	host       config.Host
	os         *launch.Process
	control    *wireup.Conn
	rank       atomic.Int32 // NoRank until startup is over
	state      atomic.Int32
	drained    chan struct{} // closed at the end of the control socket
	endHandled chan struct{} // see EndHandled
	inquiry    inquiry
	account    atomic.Pointer[wireup.Account] // the last one that it has sent
	aborted    atomic.Bool                    // it has called Abort, which was reported
	loss       atomic.Pointer[string]         // the first loss of a link to another proc; nil: none
	board      bool                           // its library can use one; known from its hello
	cut        bool                           // its trace is incomplete; of the goroutine that reads control
}

// Rank returns the proc's rank in the world, NoRank until startup is over.
func (p *Proc) Rank() wire.WorldRank { return wire.WorldRank(p.rank.Load()) }

// State returns how far the proc has got.
func (p *Proc) State() ending.ProcState { return ending.ProcState(p.state.Load()) }

// Address returns the address of the proc's host.
func (p *Proc) Address() string { return p.host.Address.String() }

// PID returns the ID of the proc's process.
func (p *Proc) PID() int { return p.os.PID() }

// Identity returns a number that differs from those of all other procs with its host's address, and
// is not the ID of its process.
func (p *Proc) Identity() int64 { return ofNode.of(p.number) }

// Over reports whether the proc's process has ended; one that was not started has not.
func (p *Proc) Over() bool { return p.os != nil && p.os.Over() }

// Ended returns how the proc's process has ended.
func (p *Proc) Ended() (how string, over bool) {
	if !p.os.Over() {
		return "", false
	}
	return p.os.Exit().String(), true
}

// EndHandled returns a channel that is closed when the process has ended and, where that was too
// early, this is reported.
func (p *Proc) EndHandled() <-chan struct{} { return p.endHandled }

// KnowsBoards reports whether the proc's library can use a board, as its hello says.
func (p *Proc) KnowsBoards() bool { return p.board }

// ID identifies the proc in messages.
func (p *Proc) ID() ProcID {
	site := p.set.Routes.Site.Name
	if p.set.World != "" {
		site += ", " + p.set.World
	}
	return ProcID{site, p.Rank(), p.Local}
}

func (p *Proc) prefix() string {
	world := ""
	if p.set.World != "" {
		world = p.set.World + "."
	}
	if r := p.Rank(); r != routes.NoRank {
		return fmt.Sprintf("[%s%d] ", world, r)
	}
	return fmt.Sprintf("[%s%s.%d] ", world, p.set.Routes.Site.Name, p.Local)
}

// Welcome informs a proc that waits in Init that it may run.
func (p *Proc) Welcome(m wireup.Message, fds ...int) error {
	p.state.Store(int32(ending.InMPI))
	return p.Send(m, fds...)
}

func (p *Proc) listen() {
	defer close(p.drained)
	for {
		m, fds, err := p.control.Recv()
		wireup.CloseAll(fds) // procs send none
		if err != nil {
			if errors.Is(err, wireup.ErrMessage) {
				p.set.End.Fail(ending.NodeFailed(fmt.Errorf("%v: %w", p.ID(), err)))
			} else if !errors.Is(err, io.EOF) {
				p.set.Log.Debug("control socket", "proc", p.ID(), "error", err)
			}
			return
		}
		p.heard(m)
	}
}

func (p *Proc) heard(m wireup.Message) {
	state := p.State()
	switch {
	case m.Kind == wireup.KindAbort:
		p.report(func(now time.Time, e *ending.Ending, x ending.Proc) *ending.Failure {
			return e.ProcAborted(now, x, m.Code, m.Reason)
		})
		p.aborted.Store(true)
	case m.Kind == wireup.KindLost && state == ending.InMPI:
		p.loses(m)
	case m.Kind == wireup.KindHello && state == ending.Starting:
		if m.Version != wireup.Version {
			p.set.End.Fail(ending.NodeFailed(fmt.Errorf("%v uses %s, whose control protocol has version %d; this node's has %d: build the program and impi-node from one release",
				p.ID(), m.Library, m.Version, wireup.Version)))
			return
		}
		p.board = m.Board
		p.state.Store(int32(ending.Greeted))
		p.set.without.inMPI()
		p.set.greeted <- p
	case m.Kind == wireup.KindAccount && m.Account != nil && state == ending.InMPI:
		p.counts(m.Account)
	case state == ending.InMPI && p.set.Events.HandleMessage(p, m):
	case m.Kind == wireup.KindStats && state >= ending.InMPI:
		if m.Stats != nil && m.Stats.Account != nil {
			p.counts(m.Stats.Account)
		}
		if !p.inquiry.heard(m.Stats, p.set.Routes.World.Procs.Len()) {
			p.set.Log.Warn("a proc describes more links than it was asked for", "proc", p.ID())
		}
	case m.Kind == wireup.KindTrace && m.Cut != nil && !p.cut:
		p.cut = true
		p.set.traceCut(p, m)
	case m.Kind == wireup.KindFini && state == ending.InMPI:
		p.state.Store(int32(ending.Finished))
		p.set.Events.LeftMPI(p, true)
		p.os.Release() // a proc that has joined may wait for the end of the node now
	default:
		p.set.Log.Warn("unexpected message from a proc", "proc", p.ID(), "kind", m.Kind)
	}
}

func (p *Proc) counts(a *wireup.Account) {
	a.Truncate(p.set.Routes.World.Procs.Len())
	p.account.Store(a)
}

// Account returns what the proc has counted, as it last reported; nil: it has not.
func (p *Proc) Account() *wireup.Account { return p.account.Load() }

func (p *Proc) loses(m wireup.Message) {
	if int(m.Peer) < 0 || int(m.Peer) >= p.set.Routes.World.Procs.Len() {
		p.set.Log.Warn("a proc lost a link to a rank that does not exist", "proc", p.ID(), "rank", m.Peer)
		return
	}
	p.set.Log.Debug("a proc has lost a link", "proc", p.ID(), "peer", m.Peer, "reason", m.Reason)
	loss := "it had lost its link to " + p.set.NameOf(m.Peer)
	p.loss.CompareAndSwap(nil, &loss)
	report := func() {
		p.report(func(now time.Time, e *ending.Ending, x ending.Proc) *ending.Failure {
			e.ProcUnlinked(now, x, p.set.NameOf(m.Peer), m.Reason)
			return nil
		})
	}
	switch {
	case m.InOrder:
	case p.set.Losses != nil:
		p.set.Losses.Unlinked(p, m.Peer, report)
	default:
		report()
	}
}

// lost returns what happened to the proc that may have made it end, or "" if nothing did.
func (p *Proc) lost() string {
	if s := p.loss.Load(); s != nil {
		return *s
	}
	return ""
}

// Send sends a message to a proc that may be gone. It does not wait for procs
// that do not read.
func (p *Proc) Send(m wireup.Message, fds ...int) error {
	if p.os.Over() {
		return errors.New("the proc has ended")
	}
	return p.control.Send(m, fds...)
}

func (p *Proc) watch() {
	defer close(p.endHandled)
	select {
	case <-p.os.Exited():
	case <-p.drained:
		p.outlivesSocket()
	}
	e, at := p.os.Exit(), p.os.EndedAt()
	if !p.os.Watched() || !e.OK() {
		select {
		case <-p.drained:
		case <-time.After(drainLimit):
		}
	}
	_ = p.control.Close() // listen ends, if it has not
	if p.State() == ending.InMPI {
		p.set.Events.LeftMPI(p, false)
	}
	if x := (ending.Exit{Text: e.String(), Status: e.Status(), Unseen: e.Unseen, At: at}); !p.keeps(x) {
		p.ends(x)
	}
}

// outlivesSocket waits for the exit of a proc that has closed its control socket. If it lives on
// without having finished, that is reported as its end, since it cannot be reached any more.
func (p *Proc) outlivesSocket() {
	var late <-chan time.Time
	if !p.set.MayDoWithout || p.State() != ending.Starting { // otherwise the program may not use MPI
		late = time.After(drainLimit)
	}
	select {
	case <-p.os.Exited():
	case <-late:
		if p.State() != ending.Finished {
			p.ends(ending.Exit{Text: "closed its connection to the node", At: time.Now()})
			if p.set.Losses != nil {
				_ = p.os.Signal(syscall.SIGKILL) // the others continue without it
			}
		}
	}
}
