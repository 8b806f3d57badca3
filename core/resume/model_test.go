package resume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// TestModel explores all interleavings of two real Links, their users, their
// drivers and the cables between them, up to a number of bytes and of faults: see
// moves for what can happen. In each state it checks what must always hold, and at
// the end that from each state both users can still be served.
func TestModel(t *testing.T) {
	if raceDetector {
		skips.NotRun(t, "-race is given, and there are a million states, all in one goroutine", "go test ./core/resume")
	}
	for _, c := range []modelConfig{
		{name: "two cuts, empty streams", faults: 2},
		{name: "one byte each way, one fault", sizes: [2]int{1, 1}, window: 2, faults: 1},
		{name: "one byte, two faults", sizes: [2]int{1, 0}, window: 1, faults: 2},
		{name: "the acceptor sends, two faults", sizes: [2]int{0, 1}, window: 1, faults: 2},
		{name: "window of one", sizes: [2]int{3, 0}, window: 1, faults: 1},
		{name: "window of two", sizes: [2]int{3, 0}, window: 2, faults: 1},
		{name: "acks after two bytes", sizes: [2]int{3, 0}, window: 8, faults: 1},
		{name: "windows of three and one", sizes: [2]int{3, 0}, window: 1, more: 2, faults: 1},
		{name: "narrow cables", sizes: [2]int{1, 0}, window: 1, faults: 1, capacity: 33},
		{name: "headers in two parts", sizes: [2]int{1, 0}, window: 1, faults: 1, fine: true},
		{name: "frames of one byte", sizes: [2]int{3, 0}, window: 3, frame: 1, faults: 1},
		{name: "checksums", sizes: [2]int{3, 0}, window: 2, faults: 1, checksum: true},
		{name: "lent", sizes: [2]int{3, 0}, window: 2, lends: true, faults: 1},
		{name: "lent, window of one", sizes: [2]int{2, 1}, window: 1, lends: true, faults: 1},
		{name: "lent, frames of one byte", sizes: [2]int{2, 0}, window: 2, frame: 1, lends: true, faults: 1},
		{name: "lent, acks after two bytes", sizes: [2]int{2, 0}, window: 8, lends: true, faults: 1},
		{name: "lent, narrow cables", sizes: [2]int{1, 0}, window: 2, lends: true, faults: 1, capacity: 33},
		{name: "lent, checksums", sizes: [2]int{2, 0}, window: 2, lends: true, faults: 1, checksum: true},
		{name: "lent, close at any time", sizes: [2]int{1, 0}, window: 1, lends: true, faults: 1, closes: true},
		{name: "close at any time", sizes: [2]int{1, 0}, window: 1, faults: 1, closes: true},
	} {
		t.Run(c.name, func(t *testing.T) { explore(t, c) })
	}
}

// modelConfig bounds an exploration.
type modelConfig struct {
	name     string
	sizes    [2]int // bytes that each end's user sends at most; CloseSend may come sooner
	window   int    // of the acceptor
	more     int    // by which the dialler's is larger
	frame    int
	capacity int // bytes that a cable holds each way; 0: any number
	checksum bool
	fine     bool // headers come in two parts, without cuts too
	faults   int  // cuts, and links that are dialled although there is one
	closes   bool // users may Close at any time
	lends    bool // users lend bytes as well, and read the underlying links themselves
}

// explore visits each state once, depth first.
func explore(t *testing.T, c modelConfig) {
	e := &explorer{t: t, seen: make(map[[2]uint64]int32), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	e.visit(newWorld(c))
	e.reachable()
	t.Logf("%d states, %d transitions, %d final states, longest way %d", len(e.goal), len(e.from), e.goals, e.longest)
	if e.goals == 0 {
		t.Error("no run came to its end")
	}
}

type explorer struct {
	t        *testing.T
	seen     map[[2]uint64]int32
	seeds    [2]maphash.Seed
	goal     []bool  // by state
	from, to []int32 // transitions that are no faults
	goals    int
	longest  int
	key      []byte
	path     []move
	spare    []*world
	moves    [][]move // by depth
}

// take returns a world that nobody uses.
func (e *explorer) take() *world {
	n := len(e.spare)
	if n == 0 {
		return &world{}
	}
	w := e.spare[n-1]
	e.spare = e.spare[:n-1]
	return w
}

// visit explores what follows a state and gives its number.
func (e *explorer) visit(w *world) int32 {
	e.key = w.key(e.key[:0])
	k := [2]uint64{maphash.Bytes(e.seeds[0], e.key), maphash.Bytes(e.seeds[1], e.key)}
	if at, seen := e.seen[k]; seen {
		return at
	}
	at := int32(len(e.goal))
	e.seen[k] = at
	e.goal = append(e.goal, w.goal())
	e.longest = max(e.longest, len(e.path))
	if e.goal[at] {
		e.goals++
	}
	if err := w.check(); err != nil {
		e.fail(err)
	}
	depth := len(e.path)
	if depth == len(e.moves) {
		e.moves = append(e.moves, nil)
	}
	e.moves[depth] = w.moves(e.moves[depth][:0])
	for _, m := range e.moves[depth] {
		next := e.take()
		next.copy(w)
		e.path = append(e.path, m)
		if err := next.do(m); err != nil {
			e.fail(err)
		}
		to := e.visit(next)
		e.path = e.path[:len(e.path)-1]
		e.spare = append(e.spare, next)
		if !m.fault && to != at {
			e.from, e.to = append(e.from, at), append(e.to, to)
		}
	}
	return at
}

// fail shows how a state was reached.
func (e *explorer) fail(err error) {
	e.t.Helper()
	e.t.Fatalf("%v\nafter %v", err, e.path)
}

// reachable wants that a goal can be reached from each state without any fault.
func (e *explorer) reachable() {
	e.t.Helper()
	into := make([][]int32, len(e.goal))
	for i, to := range e.to {
		into[to] = append(into[to], e.from[i])
	}
	good := make([]bool, len(e.goal))
	var queue []int32
	for at, goal := range e.goal {
		if goal {
			good[at] = true
			queue = append(queue, int32(at))
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range into[at] {
			if !good[from] {
				good[from] = true
				queue = append(queue, from)
			}
		}
	}
	stuck := 0
	for _, ok := range good {
		if !ok {
			stuck++
		}
	}
	if stuck > 0 {
		e.t.Errorf("%d of %d states lead nowhere", stuck, len(good))
	}
}

// world is one state: both ends and all cables.
type world struct {
	config modelConfig
	ends   [2]*Link // the dialler is the first
	users  [2]user
	cables []*cable // by epoch - 1
	faults int
}

// user is what the user of an end knows.
type user struct {
	sent  int   // bytes that are not the user's any more, or his again
	got   int   // bytes received
	final error // of Recv
	ended bool  // has called CloseSend
}

// cable is an underlying link. Bytes are in a pipe first, then they arrive.
type cable struct {
	pipes   [2]pipe // by the side that sends
	cut     bool
	closed  [2]bool
	arrival Arrival
	over    bool // accepted or turned away
	plugs   [2]plug
}

type pipe struct {
	bytes   []byte
	arrived int   // of bytes, readable by the other side
	offset  int   // of the first byte that has not arrived, in its frame
	frames  []int // length of that frame, and of those that follow
	sent    int   // bytes of the last of them that were sent
}

// unit is how many bytes arrive at a time. If fine, that is half a header, a
// header, or a byte of data; more boundaries would make no difference to anybody.
// Else it is a header with one byte of data.
func (p *pipe) unit(fine bool) int {
	rest := p.bytes[p.arrived:]
	if len(rest) == 0 {
		return 0
	}
	frame := p.frames[0]
	to := p.offset + 1
	switch {
	case fine && p.offset < 20:
		to = 20
	case fine && p.offset < headerSize:
		to = headerSize
	case frame == HelloSize:
		to = HelloSize
	case p.offset < headerSize:
		to = min(headerSize+1, frame)
	}
	return min(len(rest), to-p.offset)
}

// units is how often unit bytes can arrive.
func (p pipe) units(fine bool) (n int) {
	for ; p.unit(fine) > 0; n++ {
		p.arrive(fine)
	}
	return n
}

func (p *pipe) arrive(fine bool) {
	n := p.unit(fine)
	p.arrived += n
	if p.offset += n; p.offset == p.frames[0] {
		p.offset = 0
		p.frames = p.frames[1:]
	}
}

// cutAfter loses what is under way, but for so many units.
func (p *pipe) cutAfter(units int) {
	for range units {
		p.arrive(true)
	}
	p.bytes = p.bytes[:p.arrived]
}

// plug is one end of a cable.
type plug struct {
	w     *world
	cable int
	side  int
}

var errCut = fmt.Errorf("%w: cut", link.ErrBroken)

func (p *plug) Send(batch [][]byte) (n int, err error) {
	c := p.w.cables[p.cable]
	if c.cut || c.closed[1-p.side] {
		return 0, errCut
	}
	out := &c.pipes[p.side]
	if len(out.frames) == 0 || out.sent == out.frames[len(out.frames)-1] { // a header comes first, whole
		out.frames = append(out.frames, headerSize+int(binary.BigEndian.Uint32(batch[0][4:])))
		out.sent = 0
	}
	for _, b := range batch {
		if room := p.w.config.capacity - len(out.bytes); p.w.config.capacity > 0 && len(b) > room {
			b = b[:room]
		}
		out.bytes = append(out.bytes, b...)
		n += len(b)
	}
	out.sent += n
	return n, nil
}

func (p *plug) Recv(batch [][]byte) (n int, err error) {
	c := p.w.cables[p.cable]
	in := &c.pipes[1-p.side]
	if in.arrived == 0 && c.cut {
		return 0, errCut
	}
	if len(in.bytes) == 0 && c.closed[1-p.side] {
		return 0, io.EOF
	}
	for _, b := range batch {
		k := copy(b, in.bytes[:in.arrived])
		in.bytes = in.bytes[k:]
		in.arrived -= k
		n += k
	}
	return n, nil
}

func (p *plug) Close() error {
	p.w.cables[p.cable].closed[p.side] = true
	return nil
}

func (p *plug) Handle() int            { return link.NoHandle }
func (p *plug) Arm(link.Interest) bool { return false }
func (p *plug) Limits() link.Limits    { return link.Limits{} }
func (p *plug) CloseSend() error       { panic("nobody ends an underlying link") }

func newWorld(c modelConfig) *world {
	w := &world{config: c, faults: c.faults}
	w.config.window = max(1, c.window)
	for i := range w.ends {
		w.ends[i] = New(Config{
			Dialler: i == 0, Window: w.config.window + (1-i)*c.more, Frame: c.frame, Checksum: c.checksum && i == 1,
		})
	}
	return w
}

// copy makes w the same state as o, in w's memory.
func (w *world) copy(o *world) {
	w.config, w.users, w.faults = o.config, o.users, o.faults
	for len(w.cables) < len(o.cables) {
		w.cables = append(w.cables, &cable{})
	}
	w.cables = w.cables[:len(o.cables)]
	for i, c := range o.cables {
		d := w.cables[i]
		pipes := d.pipes
		*d = *c
		for j := range d.pipes {
			p := &d.pipes[j]
			p.bytes = append(pipes[j].bytes[:0], p.bytes...)
			p.frames = append(pipes[j].frames[:0], p.frames...)
		}
		d.plugs = [2]plug{{w, i, 0}, {w, i, 1}}
	}
	for i, l := range o.ends {
		if w.ends[i] == nil {
			w.ends[i] = &Link{}
		}
		m := &w.ends[i].state
		old := *m
		*m = l.state
		m.out.buf = reuse(old.out.buf, m.out.buf)
		m.in.buf = reuse(old.in.buf, m.in.buf)
		m.batch, m.dst, m.scratch = old.batch, nil, m.slices[:0]
		if p, ok := m.lower.(*plug); ok {
			m.lower = &w.cables[p.cable].plugs[i]
		}
		if m.plain != nil {
			m.plain = m.lower
		}
	}
}

// reuse copies b to old, but keeps nil, which is memory that nobody needed yet.
func reuse(old, b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(old[:0], b...)
}

// move is something that can happen.
type move struct {
	what  what
	side  int
	arg   int // bytes, or the number of a cable
	fault bool
	units [2]int // that still arrive when a cable is cut, by the side that sent them
}

type what int

const (
	userSends what = iota
	userLends
	driverAcknowledges
	userEnds
	userCloses
	userReceives
	driverPumps
	driverDials
	driverAccepts
	driverGivesUp
	bytesArrive
	cableIsCut
)

func (m move) String() string {
	end := [...]string{"dialler", "acceptor"}[m.side]
	return fmt.Sprintf([...]string{
		"%s: Send %d%.0v", "%s: Lend %d%.0v", "%s: Acknowledge%.0d%.0v", "%s: CloseSend%.0d%.0v", "%s: Close%.0d%.0v", "%s: Recv %d%.0v", "%s: Pump%.0d%.0v", "%s: Dial %d%.0v", "%s: Accept %d%.0v",
		"%s: Fail%.0d%.0v", "to %s: bytes arrive by cable %d%.0v", "cut%.0s: cable %d %v",
	}[m.what], end, m.arg, m.units)
}

// moves lists what can happen now.
func (w *world) moves(ms []move) []move {
	for side, l := range w.ends {
		ms = w.userMoves(ms, side, l)
		if !l.closed && (l.lower != nil) {
			ms = append(ms, move{what: driverPumps, side: side})
			if w.config.lends && l.in.ack() > l.told {
				ms = append(ms, move{what: driverAcknowledges, side: side})
			}
		}
	}
	ms = w.driverMoves(ms)
	for i, c := range w.cables {
		if w.forgotten(i) {
			continue
		}
		for side := range w.ends {
			if !c.cut && c.pipes[1-side].unit(w.config.fine) > 0 {
				ms = append(ms, move{what: bytesArrive, side: side, arg: i})
			}
		}
		if w.faults == 0 || c.cut {
			continue
		}
		for there := range c.pipes[0].units(true) + 1 {
			for back := range c.pipes[1].units(true) + 1 {
				ms = append(ms, move{what: cableIsCut, arg: i, fault: true, units: [2]int{there, back}})
			}
		}
	}
	return ms
}

func (w *world) userMoves(ms []move, side int, l *Link) []move {
	if l.closed {
		return ms
	}
	if left := w.config.sizes[side] - w.users[side].sent; !w.users[side].ended && l.err == nil {
		shown := int(l.out.shown) - w.users[side].sent
		for n := 1; n <= left; n++ {
			ms = append(ms, move{what: userSends, side: side, arg: n})
			if w.config.lends && n >= shown {
				ms = append(ms, move{what: userLends, side: side, arg: n})
			}
		}
		if shown <= 0 || l.out.shown == l.out.end {
			ms = append(ms, move{what: userEnds, side: side})
		}
	}
	if w.users[side].final == nil {
		ms = append(ms, move{what: userReceives, side: side, arg: 1})
		if w.config.sizes[1-side] > 1 {
			ms = append(ms, move{what: userReceives, side: side, arg: 9})
		}
	}
	if w.config.closes {
		ms = append(ms, move{what: userCloses, side: side})
	}
	return ms
}

// driverMoves: the dialler dials when it has to, when the acceptor may still need
// it although it is done itself, or for no reason, which is a fault. The acceptor
// deals with HELLOs in any order. It gives up when nobody will dial any more.
func (w *world) driverMoves(ms []move) []move {
	d, a := w.ends[0], w.ends[1]
	switch s := d.Status().State; {
	case s == Detached, s == Done && d.lower == nil && a.Status().State == Detached:
		ms = append(ms, move{what: driverDials, arg: len(w.cables)})
	case s == Up && w.faults > 0, s == Joining && w.faults > 0:
		ms = append(ms, move{what: driverDials, arg: len(w.cables), fault: true})
	}
	waiting := false
	for i, c := range w.cables {
		if !c.over {
			waiting = true
			ms = append(ms, move{what: driverAccepts, side: 1, arg: i})
		}
	}
	if s := d.Status().State; !waiting && (s == Closed || s == Failed) && a.Status().State == Detached {
		ms = append(ms, move{what: driverGivesUp, side: 1})
	}
	return ms
}

// forgotten reports whether nothing that happens to a cable matters any more.
func (w *world) forgotten(i int) bool {
	for _, l := range w.ends {
		if p, ok := l.lower.(*plug); ok && p.cable == i {
			return false
		}
	}
	return w.cables[i].over
}

// do makes a move. An error means that an end has done something wrong.
func (w *world) do(m move) error {
	l := w.ends[m.side]
	switch m.what {
	case userSends:
		return w.send(l.Send, m.side, m.arg)
	case userLends:
		return w.send(l.Lend, m.side, m.arg)
	case driverAcknowledges:
		l.Acknowledge(1)
	case userEnds:
		w.users[m.side].ended = true
		return l.CloseSend()
	case userCloses:
		return l.Close()
	case userReceives:
		return w.receive(l, m.side, m.arg)
	case driverPumps:
		l.Pump()
	case driverDials:
		w.cables = append(w.cables, &cable{plugs: [2]plug{{w, m.arg, 0}, {w, m.arg, 1}}})
		if err := l.Dial(&w.cables[m.arg].plugs[0]); err != nil {
			return err
		}
	case driverAccepts:
		return w.accept(l, m.arg)
	case driverGivesUp:
		l.Fail(errors.New("no dialler"))
	case bytesArrive:
		w.cables[m.arg].pipes[1-m.side].arrive(w.config.fine)
	case cableIsCut:
		c := w.cables[m.arg]
		c.cut = true
		c.pipes[0].cutAfter(m.units[0])
		c.pipes[1].cutAfter(m.units[1])
	}
	if m.fault {
		w.faults--
	}
	return nil
}

// content is byte i of the stream of a side.
func content(side, i int) byte { return byte(16*(side+1) + i) }

// send gives bytes to an end, and takes back what was lent: what is in b is
// overwritten, and what it says may not matter any more.
func (w *world) send(give func([][]byte) (int, error), side, n int) error {
	var b []byte
	for i := range n {
		b = append(b, content(side, w.users[side].sent+i))
	}
	n, err := give([][]byte{b[:n/2], b[n/2:]})
	w.users[side].sent += n
	clear(b)
	if err != nil && !w.config.closes {
		return err
	}
	return nil
}

func (w *world) receive(l *Link, side, room int) error {
	buf := make([]byte, room)
	n, answer := w.feed(l, [][]byte{buf[:room/2], buf[room/2:]})
	var err error
	if n == 0 && !answer {
		n, err = l.Recv([][]byte{buf[:room/2], buf[room/2:]})
	}
	u := &w.users[side]
	for i, b := range buf[:n] {
		if want := content(1-side, u.got+i); b != want {
			return fmt.Errorf("byte %d is %#x, not %#x", u.got+i, b, want)
		}
	}
	u.got += n
	u.final = err
	return nil
}

// feed gives an end what has come, without a call of Recv.
func (w *world) feed(l *Link, batch [][]byte) (n int, answer bool) {
	p, ok := l.lower.(*plug)
	if !w.config.lends || !ok {
		return 0, false
	}
	in := &w.cables[p.cable].pipes[1-p.side]
	used := 0
	if rest := l.DirectBytes(); rest > 0 && in.arrived > 0 {
		for _, b := range batch {
			k := copy(b, in.bytes[used:min(in.arrived, rest)])
			used += k
		}
		n, answer = used, l.ReadDirect(used)
	} else if data, whole := l.Peek(in.bytes[:in.arrived]); len(data) > 0 && !whole {
		for _, b := range batch {
			n += copy(b, data[n:])
		}
		used, answer = l.Discard(n)
	} else {
		used, n, answer = l.Feed(in.bytes[:in.arrived], batch)
	}
	in.bytes = in.bytes[used:]
	in.arrived -= used
	if answer {
		l.Flush()
	}
	return n, answer
}

// accept does what an acceptor's driver does with a cable that has come.
func (w *world) accept(l *Link, i int) error {
	c := w.cables[i]
	at := &c.plugs[1]
	h, ok, err := c.arrival.Read(at)
	switch {
	case err != nil && !errors.Is(err, errCut) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case err != nil:
		c.over = true
		return at.Close()
	case !ok:
		return nil
	}
	c.over = true
	err = l.Accept(at, h)
	switch {
	case err == nil:
		return nil
	case l.closed || l.err != nil && w.config.closes:
		_, err = at.Send([][]byte{appendRefusal(nil)})
		if err == nil || errors.Is(err, errCut) {
			err = at.Close()
		}
		return err
	case errors.Is(err, ErrStale):
		return at.Close()
	}
	return err
}

// check is what must hold in each state.
func (w *world) check() error {
	for side, l := range w.ends {
		if up := l.lower != nil && !l.joining && !l.summed && !l.out.fin && !l.in.fin; up != (l.plain != nil) || up && l.plain != l.lower {
			return fmt.Errorf("end %d has %v for packets in a hurry, and %v below", side, l.plain, l.lower)
		}
		if sent := int(l.out.end - l.out.owed); sent != w.users[side].sent {
			return fmt.Errorf("end %d has %d bytes, its user knows of %d", side, sent, w.users[side].sent)
		}
		if err := w.checkStream(l, w.ends[1-side], w.users[1-side].got); err != nil {
			return fmt.Errorf("stream of end %d: %w", side, err)
		}
		for _, err := range []error{l.err, l.cause} {
			for _, bad := range []error{ErrVersion, ErrFrame, ErrSequence, ErrAck, ErrWindow, ErrChecksum, ErrSession, ErrStale} {
				if errors.Is(err, bad) {
					return fmt.Errorf("end %d: %w", side, err)
				}
			}
		}
		if l.err != nil && !w.config.closes {
			return fmt.Errorf("end %d has failed: %w", side, l.err)
		}
		u, peer := w.users[side], w.ends[1-side]
		if l.Status().State == Done && (w.users[1-side].got != int(l.out.end) || !l.in.fin || l.in.have != peer.out.end) {
			return fmt.Errorf("end %d is done, but of its %d bytes %d were received, and of %d bytes it has %d",
				side, l.out.end, w.users[1-side].got, peer.out.end, l.in.have)
		}
		if u.final == io.EOF && (u.got != int(peer.out.end) || !peer.out.fin) {
			return fmt.Errorf("end %d sees the end after %d of %d bytes", side, u.got, peer.out.end)
		}
	}
	return nil
}

// checkStream compares the two ends of one direction, whose user got so many bytes.
func (w *world) checkStream(from, to *Link, got int) error {
	o, i := &from.out, &to.in
	end, delivered := max(o.end, o.shown), uint64(got)
	if o.fin {
		end++
	}
	if o.fin && i.fin && delivered == o.end {
		delivered++
	}
	window := uint64(w.config.window)
	switch {
	case o.acked > o.next || o.next > o.reached || o.reached > end:
		return fmt.Errorf("acked %d, next %d, reached %d, end %d", o.acked, o.next, o.reached, end)
	case o.acked > delivered:
		return fmt.Errorf("%d is acknowledged, %d was delivered", o.acked, delivered)
	case i.received() > o.reached:
		return fmt.Errorf("%d were received, %d sent", i.received(), o.reached)
	case !o.fin && o.reached > o.acked+window || min(o.reached, o.end) > o.acked+window || o.end > o.acked+o.size:
		return fmt.Errorf("%d sent and %d taken with %d acknowledged, the window is %d", o.reached, o.end, o.acked, window)
	case i.have > i.delivered+window:
		return fmt.Errorf("%d received, %d delivered, the window is %d", i.have, i.delivered, window)
	}
	return nil
}

// goal reports whether nothing is left to do: both users have seen the end of the
// other's stream, and both ends know that all has arrived. Users who closed, or
// whose peer did, have less.
func (w *world) goal() bool {
	for side, l := range w.ends {
		s := l.Status().State
		if s == Closed {
			continue
		}
		if w.users[side].final == nil || s != Done && s != Failed {
			return false
		}
	}
	return true
}

// key is all that matters for what can follow a state.
func (w *world) key(b []byte) []byte {
	b = append(b, byte(w.faults))
	for side, l := range w.ends {
		b = append(b, flags(w.users[side].final == nil, w.users[side].final == io.EOF, w.users[side].ended))
		b = l.key(b)
	}
	for i, c := range w.cables {
		if w.forgotten(i) {
			continue
		}
		b = append(b, byte(i), flags(c.cut, c.closed[0], c.closed[1], c.over), byte(c.arrival.n))
		b = append(b, c.arrival.buf[:c.arrival.n]...)
		for _, p := range c.pipes {
			b = append(b, byte(len(p.bytes)), byte(p.arrived), byte(p.offset))
			b = append(b, p.bytes...)
		}
	}
	return b
}

func (l *Link) key(b []byte) []byte {
	o, i, r, t := &l.out, &l.in, &l.rx, &l.tx
	at := byte(0xff)
	if p, ok := l.lower.(*plug); ok {
		at = byte(p.cable)
	}
	b = append(b, byte(o.acked), byte(o.next), byte(o.reached), byte(o.end), byte(o.shown), byte(o.owed), byte(i.delivered), byte(i.have),
		byte(l.theirs), byte(l.told), byte(l.epoch), at,
		flags(o.fin, i.fin, l.joining, l.summed, l.err == nil, l.closed, t.err == nil),
		byte(r.n), byte(r.left), byte(r.got), byte(t.kind), byte(t.size-t.off), byte(t.left))
	b = append(b, r.buf[:r.n]...)
	b = append(b, t.head[t.off:t.size]...)
	for _, part := range [2][][]byte{o.parts(nil, min(o.acked, o.end), o.end-min(o.acked, o.end)), i.parts(nil, i.delivered, i.have-i.delivered+r.got)} {
		for _, bytes := range part {
			b = append(b, bytes...)
		}
	}
	if l.summed && r.left > 0 {
		b = binary.BigEndian.AppendUint32(b, r.head.sum)
	}
	return b
}

func flags(bits ...bool) (b byte) {
	for i, bit := range bits {
		if bit {
			b |= 1 << i
		}
	}
	return b
}
