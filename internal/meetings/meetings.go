// Package meetings decides what a node does with what its procs say about other worlds: ports,
// calls of ports and links between procs of different worlds (MPI-4.1, 11.8). It is pure.
// internal/connmgr/meet carries the decisions out with plugins and sockets, internal/sim/job with
// simulated links.
package meetings

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// Proc is one of the node's procs.
type Proc interface {
	comparable
	Rank() wire.WorldRank
}

// MaxRequests is the maximum number of requests of a proc that may be under way at once.
const MaxRequests = 1024

// ErrBusy is the reason for refusing a request that cannot be begun.
var ErrBusy = errors.New("too many calls of the proc are under way, or the job is ending")

// ErrLives is wrapped by the reason why there is no link if the peer's node has answered that the
// peer has one, or makes one.
var ErrLives = errors.New("the peer lives")

// Reasons for refusing what a proc asks for.
var (
	errUnable = errors.New("the job cannot meet others")
	errKey    = errors.New("the port's key has a wrong size")
	errPeer   = errors.New("the peer's world, rank or secret is none")
)

// Node holds the ports, requests and links of a node's procs that are about other worlds. C is a
// connection that waits at a port, L what is known of a link. After each call the caller has to
// carry out the steps that Next returns.
type Node[P Proc, C, L any] struct {
	World dynamic.WorldID // the node's own
	Able  bool            // the job can meet other jobs

	// Resume is the maximum time that a link to another world may be without a connection, which is
	// made again if it is lost; nil or 0: links do not resume.
	Resume func() time.Duration

	Ports dynamic.Ports[P, C]
	Links dynamic.WorldLinks[*wireup.OtherWorld, L]

	requests  map[P]int // under way
	questions questions[P, C]
	steps     []Step[P, C]
}

// Action is the kind of a Step.
type Action uint8

// The actions.
const (
	Answer           Action = iota // send Message to Proc
	PassConn                       // pass Conn with Message to Proc
	Drop                           // close Conn
	ReportToOperator               // report Message.Reason to the operator: Proc has not asked for an answer
	Connect                        // connect to a port for Proc; then Connected or ConnectFailed
	Dial                           // search for a link of Pair for Proc, with Dialling and Dialled at each dial; then SearchEnded, and SetLink if there is one
	RepairLink                     // do what Repair says for Link of Pair, which Proc has lost; then Repaired
	AskNames                       // ask the name service what Proc asks by Message; then Named
	PortClosed                     // Proc has closed the port Port
)

// Step is what a node has to do.
type Step[P Proc, C any] struct {
	Action  Action
	Proc    P
	Message wireup.Message
	Conn    C

	Request  uint64               // Connect
	Pair     dynamic.WorldPair    // Dial, and Answer if there is no link
	Question QuestionID           // Dial: for Dialling, Dialled and SearchEnded
	Token    dynamic.Token        // Connect, Dial, RepairLink: keys the greeting
	Card     dynamic.BusinessCard // Connect, Dial, RepairLink: of the other end
	Limit    time.Duration        // Connect: maximum time; 0: the node's default. Dial: the same for a link that resumes to be without a connection; 0: it does not resume
	Port     dynamic.WorldID      // PortClosed

	// Of RepairLink.
	Repair dynamic.Repair
	Link   *dynamic.ResumableLink
	Epoch  uint64 // of the connection that is lost
}

// Next returns the next step; ok is false if there is none.
func (n *Node[P, C, L]) Next() (s Step[P, C], ok bool) {
	if len(n.steps) == 0 {
		return s, false
	}
	s, n.steps = n.steps[0], n.steps[1:]
	return s, true
}

func (n *Node[P, C, L]) do(s Step[P, C]) { n.steps = append(n.steps, s) }

func (n *Node[P, C, L]) answer(p P, m wireup.Message) {
	n.do(Step[P, C]{Action: Answer, Proc: p, Message: m})
}

// Refuse answers a request that failed.
func (n *Node[P, C, L]) Refuse(p P, kind wireup.Kind, request uint64, class mpierr.Class, why error) {
	n.answer(p, wireup.Message{Kind: kind, Reason: why.Error(), Meeting: &wireup.OtherWorld{Request: request, Class: int(class)}})
}

// HandleMessage handles a proc's message about other worlds. It returns false if the message is
// about something else.
func (n *Node[P, C, L]) HandleMessage(now time.Time, p P, m wireup.Message) bool {
	x := m.Meeting
	if x == nil {
		return false
	}
	switch m.Kind {
	case wireup.KindPort:
		n.openPort(now, p, x)
	case wireup.KindClosePort:
		n.closePort(p, x)
	case wireup.KindAccept:
		n.accept(p, x)
	case wireup.KindConnect:
		n.connect(p, x)
	case wireup.KindOpen:
		if m.Resumable != nil {
			n.repair(p, m)
		} else {
			n.openLink(p, m.Peer, x)
		}
	case wireup.KindForget:
		if pair := n.pair(p, m.Peer); worldIn(x.World, &pair.Peer.World) {
			n.Links.Drop(pair)
		}
	case wireup.KindPublish, wireup.KindUnpublish, wireup.KindLookup:
		if n.begin(p, wireup.KindNamed, x.Request, mpierr.Other) {
			n.do(Step[P, C]{Action: AskNames, Proc: p, Message: m})
		}
	default:
		return false
	}
	return true
}

// Begin counts a request of a proc as one that is under way, until Ended. It returns false if there
// are too many.
func (n *Node[P, C, L]) Begin(p P) bool {
	if n.requests[p] >= MaxRequests {
		return false
	}
	if n.requests == nil {
		n.requests = make(map[P]int)
	}
	n.requests[p]++
	return true
}

func (n *Node[P, C, L]) begin(p P, kind wireup.Kind, request uint64, class mpierr.Class) bool {
	begun := n.Begin(p)
	if !begun {
		n.Refuse(p, kind, request, class, ErrBusy)
	}
	return begun
}

// Ended says that a request that was begun has ended.
func (n *Node[P, C, L]) Ended(p P) {
	if n.requests[p]--; n.requests[p] == 0 {
		delete(n.requests, p)
	}
}

// ProcsWithRequests returns the number of procs that have requests under way.
func (n *Node[P, C, L]) ProcsWithRequests() int { return len(n.requests) }

// openPort opens a port. The proc gets an answer if its message has a request number.
func (n *Node[P, C, L]) openPort(now time.Time, p P, x *wireup.OtherWorld) {
	key, ok := keyIn(x.Key)
	var why error
	switch {
	case !ok:
		why = errKey
	case !n.Able:
		why = errUnable
	default:
		why = n.Ports.Open(now, p, key, x.Backlog, x.Timeout)
	}
	switch {
	case why != nil && x.Request != 0:
		n.Refuse(p, wireup.KindPort, x.Request, mpierr.Port, why)
	case why != nil:
		n.do(Step[P, C]{Action: ReportToOperator, Proc: p, Message: wireup.Message{Kind: wireup.KindPort, Reason: why.Error()}})
	case x.Request != 0:
		n.answer(p, wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.OtherWorld{Request: x.Request}})
	}
}

// closePort closes a port, with the connections that wait there.
func (n *Node[P, C, L]) closePort(p P, x *wireup.OtherWorld) {
	key, ok := keyIn(x.Key)
	if !ok || !n.Ports.Close(p, key) {
		return
	}
	n.ported()
	n.do(Step[P, C]{Action: PortClosed, Proc: p, Port: key.World()})
}

// accept answers with the next connection to a port, now or later.
func (n *Node[P, C, L]) accept(p P, x *wireup.OtherWorld) {
	key, ok := keyIn(x.Key)
	switch {
	case x.Cancel && ok:
		n.Ports.Cancel(p, key, x.Request)
	case !x.Cancel: // no port has a key of zeros
		n.Ports.Accept(p, key, x.Request)
	}
	n.ported()
}

func (n *Node[P, C, L]) ported() {
	for {
		s, ok := n.Ports.Next()
		switch {
		case !ok:
			return
		case s.Drop:
			n.do(Step[P, C]{Action: Drop, Conn: s.Conn})
		case s.Err == nil:
			m := wireup.Message{Kind: wireup.KindAccepted, Meeting: &wireup.OtherWorld{Request: s.Request}}
			n.do(Step[P, C]{Action: PassConn, Proc: s.Owner, Message: m, Conn: s.Conn})
		case s.Broken: // by the end of the spawned world that was to connect
			n.Refuse(s.Owner, wireup.KindAccepted, s.Request, mpierr.Spawn, s.Err)
		default:
			n.Refuse(s.Owner, wireup.KindAccepted, s.Request, mpierr.Port, s.Err)
		}
	}
}

// Tick ends the ports whose lifetime is over: see Ports.Deadline.
func (n *Node[P, C, L]) Tick(now time.Time) {
	n.Ports.Tick(now)
	n.ported()
}

// Reserve decides about a connection to a port, whose greeting has proved the port's key, and
// reserves a place for it if it is accepted, until Admit or Release. allowed reports whether the
// routes allow it.
func (n *Node[P, C, L]) Reserve(port dynamic.WorldID, allowed bool) dynamic.Verdict {
	if !allowed {
		return dynamic.NotAllowed
	}
	v := n.Ports.Reserve(port)
	n.ported()
	return v
}

// Admit lets in a connection to a port. It reports whether an accept was waiting for it.
func (n *Node[P, C, L]) Admit(port dynamic.WorldID, c C) (awaited bool) {
	awaited = n.Ports.Admit(port, c)
	n.ported()
	return awaited
}

// Release gives back the place of a connection whose greeting failed.
func (n *Node[P, C, L]) Release(port dynamic.WorldID) { n.Ports.Release(port) }

// Break makes accepts at a port of a proc fail, both those that wait and later ones: no process
// will connect.
func (n *Node[P, C, L]) Break(p P, port dynamic.WorldID, why error) {
	n.Ports.Break(p, port, why)
	n.ported()
}

func (n *Node[P, C, L]) connect(p P, x *wireup.OtherWorld) {
	key, ok := keyIn(x.Key)
	card, err := dynamic.ParseBusinessCard([]byte(x.Card))
	if !ok {
		err = errKey
	}
	if err != nil {
		n.Refuse(p, wireup.KindConnected, x.Request, mpierr.Port, err)
		return
	}
	if n.begin(p, wireup.KindConnected, x.Request, mpierr.Port) {
		n.do(Step[P, C]{Action: Connect, Proc: p, Request: x.Request, Token: key, Card: card, Limit: x.Timeout})
	}
}

// Connected returns the message with which a proc gets the link that connects it.
func Connected(request uint64) wireup.Message {
	return wireup.Message{Kind: wireup.KindConnected, Meeting: &wireup.OtherWorld{Request: request}}
}

// ConnectFailed tells a proc that its connect to a port was not accepted.
func (n *Node[P, C, L]) ConnectFailed(p P, request uint64, why error) {
	n.Refuse(p, wireup.KindConnected, request, mpierr.Port, why)
}

// Named answers a request about a name.
func (n *Node[P, C, L]) Named(p P, request uint64, port string, class mpierr.Class, err error) {
	if err != nil {
		n.Refuse(p, wireup.KindNamed, request, class, err)
		return
	}
	n.answer(p, wireup.Message{Kind: wireup.KindNamed, Meeting: &wireup.OtherWorld{Request: request, Port: port}})
}

// pair makes the pair of a proc of ours and a rank of a world that is filled in later.
func (n *Node[P, C, L]) pair(p P, peer wire.WorldRank) dynamic.WorldPair {
	return dynamic.WorldPair{Local: dynamic.WorldProc{World: n.World, Rank: p.Rank()}, Peer: dynamic.WorldProc{Rank: peer}}
}

func (n *Node[P, C, L]) openLink(p P, peer wire.WorldRank, x *wireup.OtherWorld) {
	pair := n.pair(p, peer)
	secret, ok := keyIn(x.Secret)
	card, err := dynamic.ParseBusinessCard([]byte(x.Card))
	dial := Step[P, C]{Action: Dial, Proc: p, Token: secret, Card: card}
	switch {
	case !worldIn(x.World, &pair.Peer.World), pair.Peer.World == n.World, peer < 0, !ok:
		n.SetNoLink(p, pair, errPeer)
	case err != nil:
		n.SetNoLink(p, pair, err)
	case !n.Able:
		n.SetNoLink(p, pair, errUnable)
	case x.LifeCheck:
		dial.Pair = pair
		n.ask(question[P, C]{dial, x})
	case n.Links.Ask(pair, x):
		dial.Pair, dial.Limit = pair, n.resumeWith(&card)
		n.do(dial)
	}
}

// SetLink records that a proc is given a link, and returns the message that goes with it.
func (n *Node[P, C, L]) SetLink(x dynamic.WorldPair, l L) wireup.Message {
	n.Links.SetLink(x, l)
	return about(x)
}

// SetNoLink tells a proc that there is no link. It may ask again.
func (n *Node[P, C, L]) SetNoLink(p P, x dynamic.WorldPair, why error) {
	n.Links.SetNoLink(x)
	m := about(x)
	m.Reason, m.Meeting.Class, m.Meeting.Lives = why.Error(), int(mpierr.Port), errors.Is(why, ErrLives)
	n.do(Step[P, C]{Action: Answer, Proc: p, Message: m, Pair: x})
}

func about(x dynamic.WorldPair) wireup.Message {
	return wireup.Message{Kind: wireup.KindLink, Peer: x.Peer.Rank, Meeting: &wireup.OtherWorld{World: x.Peer.World[:]}}
}

// Receiver is what a node knows of the proc that a link is for, when it arrives.
type Receiver struct {
	Known   bool // it is one of the node's procs
	State   ending.ProcState
	Ended   bool // its process has ended
	Allowed bool // the routes allow the link
}

// Arrive decides about a link that another world's node has made; id is the session from its
// greeting, or zero if it does not resume. A link for a proc that has ended is refused, as nobody
// would take it and the other end would wait for a word.
func (n *Node[P, C, L]) Arrive(x dynamic.WorldPair, id dynamic.ResumableID, to Receiver) dynamic.Verdict {
	switch {
	case !to.Known || x.Peer.World == n.World:
		return dynamic.UnknownRank
	case to.State != ending.InMPI || to.Ended:
		return dynamic.Leaving
	case !to.Allowed, id != dynamic.ResumableID{} && n.resumeLimit() == 0:
		return dynamic.NotAllowed
	}
	return n.Links.Arrive(x, id)
}

// AcceptedLinkLost handles the end of a link that was accepted and broke before our proc had it. If
// the proc has asked for a link meanwhile, another one is dialled.
func (n *Node[P, C, L]) AcceptedLinkLost(p P, x dynamic.WorldPair) {
	if asked, again := n.Links.LostBeforeUse(x); again {
		n.openLink(p, x.Peer.Rank, asked)
	}
}

// ProcEnded closes the ports of a proc that has ended, and forgets its links to other worlds.
func (n *Node[P, C, L]) ProcEnded(p P) {
	n.Ports.CloseAllOf(p)
	n.ported()
	n.questions.forget(p)
	n.Links.ForgetProc(dynamic.WorldProc{World: n.World, Rank: p.Rank()})
}

func keyIn(b []byte) (key dynamic.Token, ok bool) {
	copy(key[:], b)
	return key, len(b) == len(key)
}

func worldIn(b []byte, to *dynamic.WorldID) bool {
	copy(to[:], b)
	return len(b) == len(to) && *to != dynamic.WorldID{}
}
