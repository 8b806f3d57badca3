package proc

import (
	"maps"
	"unsafe"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/calls"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// looksBeforeYield is how often Go looks for C to leave the gate before it offers its core.
const looksBeforeYield = 256

type fastPath struct {
	*fastpath.Memory
	p            *Process
	endpoints    [fastpath.Peers]*Endpoint         // by the peer's index in the shared table; nil: free
	links        [fastpath.Peers]link.FastBoxLink  // of the endpoints
	received     func(buf unsafe.Pointer, n int64) // called with what was received for C
	boardMembers [board.Slots]*BoardMember         // places whose State C uses too
	streaks      uint32                            // how many times Streak has reached StreakMax
	adopted      [fastpath.Requests]*message.Request
	started      [fastpath.Requests]StartedByC // operations on the board, including those that C has made
	moving       [fastpath.Requests]*native.Transfer
	ops          [fastpath.Requests]fastOp
	extras       [fastpath.Requests]RequestExtension
	gone         map[message.Peer]uint64 // bytes that C had sent to peers that have left
}

// UseFastPath lets C code send and receive short messages between procs of this host without
// calling Go, by memory that is not Go's. It is called after Init, before anything else, and does
// nothing if the members' calls are compared. The library owns the memory from then on.
//
// received is called with the memory of each receive that C has begun and Go has ended, and how
// many bytes it got.
func UseFastPath(m *fastpath.Memory, received func(buf unsafe.Pointer, n int64)) {
	if p, err := Current(); err == nil && !p.Check {
		p.UseFastPath(m, received)
	}
}

// UseFastPath does for p what the function UseFastPath does.
func (p *Process) UseFastPath(m *fastpath.Memory, received func(buf unsafe.Pointer, n int64)) {
	p.Lock()
	defer p.Unlock()
	m.Reset()
	x := &fastPath{Memory: m, p: p, received: received, gone: make(map[message.Peer]uint64)}
	for i := range x.ops {
		x.ops[i] = fastOp{p: p, i: int32(i)}
		x.extras[i].Op = &x.ops[i]
	}
	p.FastPath = x
	p.Node.fast.Store(x)
	for _, q := range p.Endpoints.List {
		if q != nil {
			x.join(p, q)
		}
	}
}

// ResetFastPathComms makes C look up all communicators again, because one was freed, or its handle
// now denotes another one.
func ResetFastPathComms() {
	if p, err := Current(); err == nil {
		p.FastPath.Forget()
	}
}

// Forget is ResetFastPathComms for one process. x may be nil.
func (x *fastPath) Forget() {
	if x != nil {
		x.p.Lock()
		defer x.p.Unlock()
		x.Memory.Forget()
	}
}

// ForgetComm makes C look up a communicator again, which is freed. x may be nil.
func (x *fastPath) ForgetComm(c *Comm) {
	if x != nil {
		x.p.Lock()
		defer x.p.Unlock()
		x.Memory.ForgetComm(uint64(c.Context()))
	}
}

// join adds q to the peers if it takes fast-box messages, its data need no conversion, and an entry
// is free.
func (x *fastPath) join(p *Process, q *Endpoint) {
	if !q.fastBoxes || !HasNativeLayout(p.Data.messagesOf(q.Peer)) {
		return
	}
	for i := range x.endpoints {
		if x.endpoints[i] == nil {
			x.endpoints[i], x.links[i] = q, q.Link.(link.FastBoxLink)
			x.Used++
			x.Top = max(x.Top, int32(i+1))
			x.links[i].MoveFastBoxes(&x.Peers[i].FastBoxes)
			if q.native {
				x.Carriers = p.Native.library.ShortMessageCalls()
			}
			x.Memory.Forget()
			return
		}
	}
}

// HasNativeLayout reports whether elements in r are laid out as in this proc's memory, except for
// kinds that differ between languages.
func HasNativeLayout(r datatype.Representation) bool {
	return r == datatype.Native || r == datatype.HostOrder() || r == datatype.NativeX86 && datatype.HostOrder() == datatype.NativeLE
}

func (x *fastPath) leave(q *Endpoint) {
	for i := range x.endpoints {
		if x.endpoints[i] == q {
			x.gone[q.Peer] += x.Peers[i].Payload
			x.links[i].MoveFastBoxes(new(link.FastBoxes))
			x.settle(i)
			x.endpoints[i], x.links[i] = nil, nil
			x.Used--
			x.Peers[i] = fastpath.Peer{}
			x.Memory.Forget()
		}
	}
}

// close closes the gate to C, and takes over the receives that C has posted. The process is locked.
func (x *fastPath) close(p *Process) {
	if x.Gate.Load() == fastpath.Closed {
		return
	}
	if !x.Gate.CompareAndSwap(fastpath.Open, fastpath.Closed) {
		x.askToLeave()
	}
	p.spin.SetPolls(int(x.Polls))
	if n := x.Streak / StreakMax; n != x.streaks { // C has asked Go to look at all links
		x.streaks = n
		p.Driver.PollAll()
		p.Eng.RaiseAllowances()
	} else if x.reviewed() {
		p.Eng.RaiseAllowances()
	}
	for x.First != fastpath.None {
		x.adopt(p)
	}
	if x.Starts > 0 {
		x.adoptStarts()
	}
	if x.Moves.First != fastpath.None {
		x.adoptMoves()
	}
}

// adoptMoves goes on with the messages whose data the site's MPI is moving.
func (x *fastPath) adoptMoves() {
	for i := x.Moves.First; i != fastpath.None; i = x.Table[i].Next {
		r := &x.Table[i]
		r.State = fastpath.Adopted
		x.moving[i] = x.p.Native.links.AwaitTransfer(r.Board, int32(r.What))
	}
	x.Moves = fastpath.NativeTransfers{First: fastpath.None, Last: fastpath.None}
}

// adoptStarts goes on with the operations on boards that C has started.
func (x *fastPath) adoptStarts() {
	for slot := range x.Begun {
		b := &x.Begun[slot]
		for i := b.First; i != fastpath.None; i = x.Table[i].Next {
			x.Table[i].State = fastpath.Adopted
			x.started[i] = x.boardMembers[slot].Started.Adopt(&x.Table[i], b.Read != 0)
		}
		*b = fastpath.StartedOps{First: fastpath.None, Last: fastpath.None}
	}
	x.Starts = 0
}

// reviewed reports whether C has taken so many messages from a peer that it takes no more until
// Go has looked at what that peer may send.
func (x *fastPath) reviewed() bool {
	for i := range x.Top {
		if l := &x.Peers[i]; x.endpoints[i] != nil && l.Received >= l.Review {
			return true
		}
	}
	return false
}

// askToLeave closes the gate: it asks C to leave, and waits until it has.
func (x *fastPath) askToLeave() {
	x.LeaveAsked.Store(1)
	for i := 1; !x.Gate.CompareAndSwap(fastpath.Open, fastpath.Closed); i++ {
		if i%looksBeforeYield == 0 {
			polling.Yield() // the thread inside may be waiting for this core
		}
		poll.Pause()
	}
	x.LeaveAsked.Store(0)
}

// adopt makes the oldest receive that C has posted a receive of the engine.
func (x *fastPath) adopt(p *Process) {
	i := x.First
	r := &x.Table[i]
	x.First = r.Next
	if x.First == fastpath.None {
		x.Last = fastpath.None
	}
	from := message.NoPeer
	if r.Peer != fastpath.AnySource {
		from = x.endpoints[r.Peer].Peer
	}
	env := message.Envelope{Context: wire.ContextID(r.Context), Rank: wire.CommRank(r.Rank), Tag: wire.Tag(r.Tag)}
	if r.Tag == AnyTag {
		env.Tag = message.AnyTag
	}
	if r.Rank == AnySource {
		env.Rank = message.AnySource
	}
	r.State = fastpath.Adopted
	x.adopted[i] = p.Endpoints.IrecvBytes(env, from, unsafe.Slice((*byte)(r.Buf), r.Room))
}

// open opens the gate to C if nothing else needs progress. The process is locked, and its caller
// unlocks it next.
func (x *fastPath) open(p *Process) {
	if x.Used == 0 || !composed(p) || p.Driver.Wanted.Load() != 0 || LifeState(p.State.Load()) >= Finalizing {
		return
	}
	x.Polls, x.Yields, x.Shared = int32(p.spin.PollsBeforeYield()), flag(p.spin.Yields()), p.spin.SharedAfter()
	busy := p.Background.busy()
	if x.Busy.Store(flag(busy)); p.Node.news.Load() { // since composed has looked
		x.interrupt()
	}
	x.Serves = flag(len(p.Background.List) != 0)
	if busy {
		x.Gate.Store(fastpath.Open) // C may still do operations on windows
		return
	}
	quiet := p.Eng.NothingPending()
	for i, q := range x.endpoints[:x.Top] {
		if q == nil {
			continue
		}
		l := &x.Peers[i]
		sends, takes := p.Eng.FastBoxesOpen(q.ID)
		var out, in bool
		l.OutAt, l.InAt, out, in = x.links[i].FastBoxesAt()
		l.Sends, l.Takes = flag(sends && out), flag(takes && in && quiet)
	}
	x.Counts = flag(p.Account.on())
	x.Gate.Store(fastpath.Open)
}

// sent returns how many bytes of data C has sent to its peers. x may be nil; the process is locked.
func (x *fastPath) sent() map[message.Peer]uint64 {
	if x == nil {
		return nil
	}
	bytes := maps.Clone(x.gone)
	for i, q := range x.endpoints[:x.Top] {
		if q != nil {
			bytes[q.Peer] += x.Peers[i].Payload
		}
	}
	return bytes
}

// settle adds what C has waited for a peer to the account, if there is one, and for the members
// that share boards.
func (x *fastPath) settle(i int) {
	l := &x.Peers[i]
	if a := &x.p.Account; a.on() && x.endpoints[i] != nil {
		a.waits[wait{ForRecv, x.endpoints[i].Peer}] += calls.Elapsed(l.Waited)
	}
	l.Waited = 0
}

// settleAll is settle for all peers and boards. x may be nil; the process is locked.
func (x *fastPath) settleAll() {
	if x == nil {
		return
	}
	for i := range x.Top {
		x.settle(int(i))
	}
	for slot, s := range x.boardMembers {
		for m := range x.Waited[slot] {
			if d := x.Waited[slot][m]; d > 0 && s != nil && m < len(s.procs) {
				x.p.Account.waits[wait{ForCollective, message.Peer(s.procs[m])}] += calls.Elapsed(d)
			}
			x.Waited[slot][m] = 0
		}
	}
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// FastPathBoard returns the slot of the board in which C does operations of c, or None if C does
// none.
func (c *Comm) FastPathBoard() int32 {
	if cs := &c.state.Colls; cs.Settled.Load() && cs.OnBoard != nil && cs.OnBoard.shared {
		return int32(cs.OnBoard.Member.Index())
	}
	return fastpath.None
}

// FastPath registers c with C, under its handle, unless C has it already.
func (c *Comm) FastPath(handle uintptr) {
	x := c.p.FastPath
	if x == nil {
		return
	}
	on, team := c.FastPathBoard(), c.p.Native.number(c)
	if e := x.CommOf(handle); e.Handle == handle && e.Board == on && e.Team == team {
		return
	}
	c.p.Lock()
	defer c.p.Unlock()
	if c.Alive() != nil || c.state.Revoked.Load() {
		return
	}
	e := x.CommOf(handle)
	*e = fastpath.Comm{Handle: handle, Context: uint64(c.Context()), Rank: int32(c.Rank()), TagUB: int32(c.TagUB()), Board: on, Team: team, Size: int32(c.Size())}
	at := map[message.Peer]int8{}
	for i, q := range x.endpoints[:x.Top] {
		if q != nil {
			at[q.Peer] = int8(i)
		}
	}
	size, known := c.Partners().Size(), 0
	for rank := range e.Peer {
		e.Peer[rank] = fastpath.None
		if rank >= size {
			continue
		}
		if proc, ok := c.Partner(rank); ok {
			if i, ok := at[message.Peer(proc)]; ok {
				e.Peer[rank] = i
				known++
			}
		}
	}
	e.Whole = int32(flag(known > 0 && known >= size-1))
}

// WakeFastPath wakes the sleeping proc at the other end of a peer, to which C has sent a fast-box
// message.
func WakeFastPath(peer int) {
	if p, err := Current(); err == nil {
		p.FastPath.Wake(peer)
	}
}

// RenewFastPathAllowances sends new allowances to peers, when C has received enough of their
// messages.
func RenewFastPathAllowances() {
	if p, err := Current(); err == nil {
		p.Lock() // output reviews the allowances
		p.output()
		p.Unlock()
	}
}

// ProgressFastPath handles messages of peers, which may be a new allowance that C needs.
func ProgressFastPath() {
	if p, err := Current(); err == nil {
		p.Lock()
		p.Test()
		p.Unlock()
	}
}

// Wake wakes the proc at the other end of a peer's link.
func (x *fastPath) Wake(peer int) {
	x.p.Lock()
	defer x.p.Unlock()
	if q := x.endpoints[peer]; q != nil {
		if q.InPlace != nil {
			q.InPlace.Commit()
		}
		x.links[peer].WakeForFastBox()
	}
}

// share lets C do operations on the board for the communicator of s.
func (x *fastPath) share(s *BoardMember) {
	x.p.Lock()
	defer x.p.Unlock()
	at := s.Member.Index()
	s.Member.SetState(&x.Boards[at])
	x.boardMembers[at], s.shared = s, true
	x.Used++
}

func (x *fastPath) unshare(s *BoardMember) {
	x.p.Lock()
	defer x.p.Unlock()
	at := s.Member.Index()
	s.Member.SetState(new(board.State))
	x.Boards[at].Members = 0
	x.boardMembers[at], s.shared = nil, false
	x.Used--
	x.Memory.Forget()
}

// WakeFastPathMembers wakes the members of a communicator that sleep, after C has written to its
// slot of the board.
func WakeFastPathMembers(slot int) {
	if p, err := Current(); err == nil {
		p.FastPath.ring(slot)
	}
}

// BoardMemberAt returns the place in a slot of the board in which C does operations.
func (x *fastPath) BoardMemberAt(slot int) *BoardMember { return x.boardMembers[slot] }

func (x *fastPath) ring(slot int) {
	x.p.Lock()
	defer x.p.Unlock()
	if s := x.boardMembers[slot]; s != nil {
		s.Notify()
	}
}

// FastPathRequest returns the request that C has made as entry i of its table, in generation gen.
func (c *Comm) FastPathRequest(i int, gen uint32) Request {
	x := c.p.FastPath
	x.extras[i].Fn = "Irecv"
	if r := &x.Table[i]; r.Peer == fastpath.OnBoard {
		x.extras[i].Fn = startNames[r.What]
	}
	return Request{c: c, extra: &x.extras[i], standing: standing{Gen: gen, State: Active}}
}

var startNames = map[uint32]string{
	fastpath.BoardBarrier: "Ibarrier", fastpath.BoardBcast: "Ibcast", fastpath.BoardGather: "Igather", fastpath.BoardScatter: "Iscatter",
	fastpath.BoardAllgather: "Iallgather", fastpath.BoardAlltoall: "Ialltoall", fastpath.BoardReduce: "Ireduce", fastpath.BoardAllreduce: "Iallreduce",
}

type fastOp struct {
	p *Process
	i int32
}

func (o *fastOp) record() *fastpath.Request { return &o.p.FastPath.Table[o.i] }

func (o *fastOp) Generation() uint32 { return o.record().Gen }

// steady reports whether it is an operation on a board, which can neither be cancelled nor freed.
func (o *fastOp) steady() bool { return o.record().Peer == fastpath.OnBoard }

func (o *fastOp) Done() bool {
	if s := o.p.FastPath.started[o.i]; s != nil {
		return s.Done()
	}
	if t := o.p.FastPath.moving[o.i]; t != nil {
		done, _ := t.Done()
		return done
	}
	m := o.p.FastPath.adopted[o.i]
	return m == nil || m.Done()
}

func (o *fastOp) Status() (Status, error) {
	if s := o.p.FastPath.started[o.i]; s != nil {
		return s.Status()
	}
	if m := o.p.FastPath.adopted[o.i]; m != nil {
		return o.p.RecvStatus(m, nil), nil
	}
	r := o.record()
	if r.Peer == fastpath.None || r.Peer == fastpath.OnBoard {
		return EmptyStatus, nil
	}
	return Status{Source: int(r.Source), Tag: int(r.From), bytes: int64(r.Bytes)}, nil
}

func (o *fastOp) Finish() (st Status, err error) {
	if s := o.p.FastPath.started[o.i]; s != nil {
		st, err = s.Finish()
	} else if m := o.p.FastPath.adopted[o.i]; m != nil {
		st, err = o.p.FinishRecv(m, nil)
		if err == nil && !st.cancelled {
			o.p.FastPath.received(o.record().Buf, st.bytes)
		}
	} else if t := o.p.FastPath.moving[o.i]; t != nil {
		st, err = o.moved(t)
	} else {
		st, err = o.Status()
	}
	o.release()
	return st, err
}

// moved is Finish for a message whose data the site's MPI has moved. It cannot be cancelled, as it
// is matched, or may be.
func (o *fastOp) moved(t *native.Transfer) (Status, error) {
	done, err := t.Done()
	if err != nil {
		return Status{}, err
	}
	if !done {
		return Status{}, o.p.Failure
	}
	if r := o.record(); r.Peer != fastpath.None {
		o.p.FastPath.received(r.Buf, int64(r.Bytes))
	}
	return o.Status()
}

func (o *fastOp) Cancel() error {
	if o.steady() {
		return (&Uncancellable{}).Cancel()
	}
	if m := o.p.FastPath.adopted[o.i]; m != nil {
		o.p.Eng.Cancel(m)
		o.p.output()
	}
	return nil
}

func (o *fastOp) Free() error {
	if o.steady() {
		return (&Uncancellable{}).Free()
	}
	if m := o.p.FastPath.adopted[o.i]; m != nil {
		o.p.Eng.Release(m)
	}
	o.release()
	return nil
}

func (o *fastOp) release() {
	o.p.FastPath.adopted[o.i], o.p.FastPath.started[o.i], o.p.FastPath.moving[o.i] = nil, nil, nil
	o.p.FastPath.Release(o.i)
}
