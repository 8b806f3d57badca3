package proc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/calls"
	"github.com/openimpi/impi/internal/wireup"
)

// longWait is how long a proc must have waited before its other threads are watched.
const longWait = time.Second

// describe sends the node the statistics of links and of waiting. It takes the lock once, and
// nothing is counted for it.
func (nc *nodeControl) describe(ofCalls bool) {
	before := time.Now()
	var waiting []calls.Call
	if ofCalls {
		waiting = calls.Waiting()
	}
	nc.p.Lock()
	s := nc.stats()
	if nc.p.Asleep && nc.p.rest.since.Before(before) {
		s.Wait = nc.waitOf(waiting)
	}
	s.Account = nc.p.Account.counted()
	nc.p.Unlock()
	if s.Wait != nil && s.Wait.Time >= int64(longWait) {
		s.Wait.Computes = calls.Computing()
	}
	s.Retransmits = nc.resent.Totals()
	nc.asked.Store(false) // a later question is answered by this answer or another one
	for _, part := range SplitStats(s, wireup.MaxStats) {
		if nc.Control.Send(wireup.Message{Kind: wireup.KindStats, Stats: part}) != nil {
			return // the node is gone
		}
	}
}

// stats returns the statistics of links and of waiting. The process is locked.
func (nc *nodeControl) stats() *wireup.Stats {
	w := nc.p.spin.Waiting()
	s := &wireup.Stats{Budget: int64(w.Budget), Oversubscribed: w.Oversubscribed, Score: w.Score, State: "computing"}
	switch {
	case nc.p.Asleep:
		s.State = "asleep"
	case nc.p.Driving:
		s.State = "polling"
	}
	s.Counts = nc.counts()
	direct := make(map[message.Peer]*Endpoint)
	for _, q := range nc.p.Endpoints.List {
		switch {
		case q == nil:
		case q.Peer == message.NoPeer:
			measure(q, &s.Agent)
		default:
			direct[q.Peer] = q
		}
	}
	byC := nc.p.FastPath.sent()
	for r := range nc.p.Job.Size() {
		peer := message.Peer(r)
		x := wireup.LinkStats{Peer: rank(peer), Messages: nc.p.Eng.SentTo(peer), Data: nc.p.Eng.BytesTo(peer) + byC[peer]}
		_, x.Routed = nc.p.Eng.Route(peer)
		if q := direct[peer]; q != nil {
			x.Direct = true
			measure(q, &x)
		}
		if x.Direct || x.Routed || x.Messages > 0 {
			s.Links = append(s.Links, x)
		}
	}
	return s
}

// waitOf describes what the goroutines wait for that are in the calls waiting. The process is
// locked.
func (nc *nodeControl) waitOf(waiting []calls.Call) *wireup.Wait {
	p := nc.p
	w := &wireup.Wait{Time: int64(time.Since(p.rest.since))}
	for _, c := range waiting {
		w.Calls = append(w.Calls, wireup.Call(c))
	}
	add := func(x wireup.Partner) {
		if len(w.Partners) == wireup.MaxPartners {
			w.Left++
			return
		}
		w.Partners = append(w.Partners, x)
	}
	for x := range p.Eng.Pending() {
		if x.What != "message" && !p.Comms.own(x) { // no goroutine waits for it
			add(nc.partner(x))
		}
	}
	nc.waitOfWindows(w, add)
	if s := p.Survival; s != nil && s.Recovery != nil {
		s.Recovery.Waits(func(of message.Peer, context wire.ContextID) {
			add(nc.fellow(of, nc.commOf(context)))
		})
	}
	if p.Probing.On {
		add(nc.partner(message.Pending{What: "recv", Peer: p.Probing.From, Env: p.Probing.Env, Total: -1}))
	}
	for _, s := range append(p.Boards.members[:len(p.Boards.members):len(p.Boards.members)], p.Boards.pending...) {
		members := s.wait.Missing()
		if s.pending {
			members |= s.Started.Unfinished()
		}
		for rank, peer := range s.procs {
			if members&board.SetOf(rank) != 0 {
				add(wireup.Partner{What: "collective", Peer: wire.WorldRank(peer), Comm: nc.commOf(s.C.Context())})
			}
		}
	}
	return w
}

// Window is a window, as seen by the report of what the process waits for.
type Window interface {
	// Label returns the window's name for messages.
	Label() string
	// Waits calls wants for each wait of a goroutine, with one of the names of package wireup and
	// the peer that it waits for. NoPeer is this proc, which waits for its own operations. The
	// process is locked.
	Waits(wants func(what string, of message.Peer))
	// Contended returns the holders of the lock of this proc's memory, and the peers that wait for
	// it, or nil and nil if none waits. The process is locked.
	Contended() (holders, waiters []message.Peer)
}

func (nc *nodeControl) waitOfWindows(w *wireup.Wait, add func(wireup.Partner)) {
	windows := nc.p.Comms.windows
	for _, id := range slices.Sorted(maps.Keys(windows)) {
		win := windows[id]
		win.Waits(func(what string, of message.Peer) {
			if of == message.NoPeer {
				of = message.Peer(nc.p.Job.Rank)
			}
			add(nc.member(what, of, win.Label()))
		})
		holders, waiters := win.Contended()
		lock := wireup.Lock{Window: win.Label(), Holders: nc.ranks(holders), Waiters: nc.ranks(waiters)}
		if len(lock.Holders) == len(holders) && len(lock.Waiters) > 0 { // holders of other worlds cannot be reported
			w.Locks = append(w.Locks, lock)
		}
	}
	w.Truncate()
}

// member describes something that is wanted of a member of a window.
func (nc *nodeControl) member(what string, of message.Peer, window string) wireup.Partner {
	w := wireup.Partner{What: what, Peer: rank(of), Comm: "window " + window}
	if int(of) >= nc.p.Job.Size() {
		nc.away(&w, of)
	}
	return w
}

// ranks returns the ranks of those of the peers that are of this world.
func (nc *nodeControl) ranks(of []message.Peer) (list []wire.WorldRank) {
	for _, p := range of {
		if int(p) < nc.p.Job.Size() {
			list = append(list, rank(p))
		}
	}
	return list
}

// fellow is a proc that another one waits for in an operation of all members of a communicator.
func (nc *nodeControl) fellow(peer message.Peer, name string) wireup.Partner {
	w := wireup.Partner{What: "collective", Peer: rank(peer), Comm: name}
	if nc.p.Worlds.Foreign(peer) {
		nc.away(&w, peer)
	}
	return w
}

func (nc *nodeControl) partner(x message.Pending) wireup.Partner {
	if x.Env.Context == comm.SurvivalContext { // the barrier of Finalize
		return nc.fellow(x.Peer, nc.p.Comms.World.Name())
	}
	if win := nc.p.Comms.windows[x.Env.Context]; win != nil {
		return nc.member(wireup.WantsWindow, x.Peer, win.Label())
	}
	w := wireup.Partner{What: x.What, Peer: rank(x.Peer), Tag: int(x.Env.Tag), Comm: nc.commOf(x.Env.Context)}
	if w.Any = x.Peer == message.NoPeer; w.Any {
		w.Peer = 0
	}
	if int(w.Peer) >= nc.p.Job.Size() {
		nc.away(&w, x.Peer)
	} else if x.Env.Context >= comm.WideLimit && w.Any {
		w.OtherWorld = true
	}
	if x.Total >= 0 {
		w.Why = x.Why
	}
	if x.Env.Context%2 == 1 {
		w.What, w.Tag = "collective", 0
	}
	return w
}

// commOf is nameOf, which calls the communicator of a window like the window. The process is
// locked.
func (nc *nodeControl) commOf(id wire.ContextID) string {
	if win := nc.p.Comms.windows[id&^1]; win != nil {
		return "window " + win.Label()
	}
	return nc.p.Comms.nameOf(id)
}

func (cs *communicators) nameOf(id wire.ContextID) string {
	for _, c := range []*Comm{cs.World, cs.Self, cs.Parent.Load()} {
		if c != nil && (id == c.Context() || id == c.CollectiveContext()) {
			return c.Name()
		}
	}
	if name, ok := cs.names.Load(id &^ 1); ok && name != "" {
		return name.(string)
	}
	if id >= comm.WideLimit {
		return "a communicator of several worlds"
	}
	return fmt.Sprintf("the communicator with context ID %d", id&^1)
}

// SetWindow registers a window as the receiver of messages in a context, or with nil removes it.
// The process is locked.
func (cs *communicators) SetWindow(id wire.ContextID, w Window) {
	switch {
	case w == nil:
		delete(cs.windows, id)
		return
	case cs.windows == nil:
		cs.windows = make(map[wire.ContextID]Window)
	}
	cs.windows[id] = w
}

// own reports whether a receive is the library's own, which is posted for whatever may come.
func (cs *communicators) own(x message.Pending) bool {
	if x.Env.Context == comm.SurvivalContext {
		return x.What != "recv" || x.Env.Tag != tagFinalize
	}
	return x.What == "recv" && (x.Env.Context >= firstOwnContext || cs.windows[x.Env.Context] != nil)
}

// counts returns what the proc counts. The process is locked.
func (nc *nodeControl) counts() wireup.Counts {
	p, now := nc.p, time.Now()
	c := wireup.Counts{
		Sleeps: p.rest.sleeps, Slept: int64(p.rest.slept), Clock: int64(now.Sub(epoch)),
		EndedSent: p.Endpoints.sent, EndedReceived: p.Endpoints.received,
	}
	if p.Asleep {
		c.Sleeps++
		c.Slept += int64(now.Sub(p.rest.began))
	}
	for x := range p.Eng.Pending() {
		if x.What == "message" {
			c.Unexpected++
			c.UnexpectedBytes += x.Bytes
		}
	}
	return c
}

func measure(q *Endpoint, x *wireup.LinkStats) {
	if sent, received, ok := q.counted(); ok {
		x.Counted, x.Pure = true, true
		x.Sent, x.Received = sent, received
	}
	if q.Compressed != nil {
		c := q.Compressed.Counted()
		x.Compressed = &wireup.CompressedBytes{Sent: c.Sent, Received: c.Received, SentCompressed: c.WireSent, ReceivedCompressed: c.WireReceived}
	}
	if q.Resumable != nil {
		x.Disconnected, _ = q.Resumable.Broken()
		x.DisconnectedFor = int64(q.Resumable.BrokenFor())
	}
	if c, ok := q.Link.(interface{ RTT() (time.Duration, bool) }); ok {
		d, _ := c.RTT()
		x.RTT = int64(d)
	}
}

// SplitStats splits an answer into records of at most n links.
func SplitStats(s *wireup.Stats, n int) (parts []*wireup.Stats) {
	links := s.Links
	for {
		part := *s
		part.Links, links = links[:min(n, len(links))], links[min(n, len(links)):]
		part.More = len(links) > 0
		if len(parts) > 0 {
			part.Account, part.Retransmits = nil, nil
		}
		parts = append(parts, &part)
		if !part.More {
			return parts
		}
	}
}

// WaitCause is the kind of event that a goroutine waits for.
type WaitCause uint8

// The causes.
const (
	ForOther      WaitCause = iota // anything else, such as a node's answer
	ForRecv                        // a message, or the rest of it
	ForSend                        // a receiver, or room on the way to it
	ForCollective                  // other members of a communicator
	ForWindow                      // other members of a window
	causes
)

var causeNames = [causes]string{"other", "recv", "send", "collective", "one-sided"}

// WaitCauseNames returns the names of all causes of waiting, by cause, as accounts have them.
func WaitCauseNames() []string { return causeNames[:] }

// account is where a proc counts its waits. Where nobody wants to know, waits is nil and no clock
// is read. The process's lock guards it.
type account struct {
	p     *Process
	trace *calls.Timeline // nil: none is written
	run   *calls.Run      // counts calls of the proc; nil: none may be counted
	begun time.Time
	init  time.Duration // time in Init, once it is over
	waits map[wait]time.Duration
}

func (a *account) on() bool { return a.waits != nil }

// wait is what was waited for, and whom; NoPeer stands for others than the job's procs, and for
// those that are not known.
type wait struct {
	cause WaitCause
	peer  message.Peer
}

func (a *account) begin() {
	if a.p.Job.Account {
		a.begun, a.waits = time.Now(), make(map[wait]time.Duration)
		calls.Enable()
	}
	if path := a.p.Job.Timeline; path != "" {
		a.beginTrace(path)
	}
}

// beginTrace begins to write a timeline. If that fails, the job goes on without it.
func (a *account) beginTrace(path string) {
	cut := func(written int64, cause error) { a.p.Trace.fileCut(path, written, cause) }
	file, err := CreateRegularFile(path)
	if err != nil {
		cut(0, err)
		return
	}
	world := ""
	if a.p.Job.Parent != "" {
		world = a.p.Job.Name[strings.LastIndexByte(a.p.Job.Name, '/')+1:]
	}
	a.trace = calls.Trace(&TraceFile{W: &calls.JSONList{F: file}, Cut: cut}, calls.TimelineProc{
		World: world,
		Rank:  int(a.p.Job.Rank), Host: int(a.p.Job.Proc(a.p.Job.Rank).Node), HostName: ProcessorName(),
		Comm: func(id uint64) string { return a.p.Comms.nameOf(wire.ContextID(id)) },
	}, a.p.Job.TimelineEach)
	a.run = a.trace.Run
}

func (a *account) waited(c WaitCause, peer message.Peer, since time.Time) {
	if int(peer) < 0 || int(peer) >= a.p.Job.Size() {
		peer = message.NoPeer
	}
	a.waits[wait{c, peer}] += time.Since(since)
}

// AwaitFor is Process.AwaitProgress for a goroutine that waits for a peer, or for NoPeer.
func (a *account) AwaitFor(c WaitCause, peer message.Peer) {
	if !a.on() {
		a.p.AwaitProgress()
		return
	}
	begun := time.Now()
	a.p.AwaitProgress()
	a.waited(c, peer, begun)
}

// AwaitSoon is Process.AwaitProgress for a goroutine that waits for a message, which may come soon.
// The time does not count as a wait.
func (a *account) AwaitSoon(r *message.Request) {
	if !receiveSoon(a.p, r) {
		a.p.AwaitProgress()
	}
}

// AwaitRequest is Process.AwaitProgress for a goroutine that waits for a request.
func (a *account) AwaitRequest(r *message.Request) {
	if !a.on() {
		a.AwaitSoon(r)
		return
	}
	begun, generation := time.Now(), r.Generation()
	receives, peer := r.Side()
	a.p.AwaitProgress()
	if peer == message.NoPeer && r.Generation() == generation {
		_, peer = r.Side() // it may have matched
	}
	cause := ForSend
	if receives {
		cause = ForRecv
	}
	a.waited(cause, peer, begun)
}

// AwaitAny is Process.AwaitProgress for a goroutine that waits for any of several requests. The
// time counts for the first that is done; waited is the time that the goroutine has waited until
// then.
func (a *account) AwaitAny(reqs []Request, waited *time.Duration) {
	if !a.on() {
		a.p.AwaitProgress()
		return
	}
	begun := time.Now()
	a.p.AwaitProgress()
	*waited += time.Since(begun)
	for i := range reqs {
		q := &reqs[i]
		if q.State != Active || q.c.p != a.p {
			continue
		}
		if done, err := q.Done(); !done || err != nil {
			continue
		}
		w := wait{ForOther, message.NoPeer}
		if q.r != nil {
			w.cause = ForSend
			receives, peer := q.r.Side()
			if w.peer = peer; receives {
				w.cause = ForRecv
			}
		}
		a.waited(w.cause, w.peer, time.Now().Add(-*waited))
		*waited = 0
		return
	}
}

// Initialized counts the time of a call of Init that has begun at that time. The process is locked.
func (a *account) Initialized(begun time.Time) {
	if a.on() {
		a.begun, a.init = begun, time.Since(begun)
	}
}

// Finishing counts the time of a call of Finalize that has begun at that time, and sends the counts
// to the node before the proc leaves. The process is locked.
func (a *account) Finishing(begun time.Time) {
	if a.trace != nil {
		a.trace.Close()
		a.trace = nil
	}
	if !a.on() || a.p.Node.Control == nil {
		return
	}
	calls.Add(calls.Finalize, time.Since(begun))
	_ = a.p.Node.Control.Send(wireup.Message{Kind: wireup.KindAccount, Account: a.counted()}) // the next message fails as well
}

// counted returns what was counted so far; nil if nothing is. The process is locked.
func (a *account) counted() *wireup.Account {
	if !a.on() {
		return nil
	}
	p, sum := a.p, &wireup.Account{Time: int64(time.Since(a.begun)), Init: int64(a.init)}
	for _, c := range calls.Counts() {
		sum.Calls = append(sum.Calls, wireup.CallSum{Name: c.String(), Class: c.Class(), Calls: c.Calls, Time: int64(c.Time)})
	}
	p.FastPath.settleAll()
	for w, d := range a.waits {
		sum.Waits = append(sum.Waits, wireup.WaitSum{Cause: causeNames[w.cause], Peer: rankOrNone(w.peer), Time: int64(d)})
	}
	byC := p.FastPath.sent()
	for r := range p.Job.Size() {
		peer := message.Peer(r)
		if n, bytes := p.Eng.SentTo(peer), p.Eng.BytesTo(peer)+byC[peer]; n > 0 || bytes > 0 {
			sum.Sent = append(sum.Sent, wireup.SentSum{Peer: int(rank(peer)), Messages: n, Bytes: bytes})
		}
	}
	sum.Shorten()
	return sum
}

func rankOrNone(p message.Peer) int {
	if p == message.NoPeer {
		return wireup.NoPeer
	}
	return int(rank(p))
}

// ContextOf returns one more than the context ID of a communicator, or 0 if c is nil.
func ContextOf(c *Comm) uint64 {
	if c == nil || c.Comm == nil {
		return 0
	}
	return uint64(c.Context()) + 1
}

// SizeOf returns the number of bytes of a buffer's data, or -1 for a buffer that Check refuses,
// such as InPlace.
func SizeOf(b Buffer) int64 {
	if b.Check() != nil {
		return -1
	}
	return b.Size(0)
}
