package play

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

// channel is the connection of a host of the tester with one of the IUT. A goroutine
// reads it: it checks what holds for every packet, counts windows, answers what the
// script does not want to see, and queues the rest for the script.
type channel struct {
	t             *T
	j             *job
	c             *conn
	local, remote *host

	wmu sync.Mutex // held for writes

	mu     sync.Mutex
	queue  []packet
	err    error // why reading has ended
	change chan struct{}
	fini   bool
	flow   map[pair]*window
	manual bool
	deaf   bool // probes are not answered
}

type pair struct{ from, to procID }

// window is what the tester knows of the windows of a pair: one of its own procs and
// one of the IUT's.
type window struct {
	sent, acked int // counted packets to the IUT; PROTOACKs from it
	got, told   int // counted packets from the IUT; PROTOACKs to it
	unsure      int // packets to the IUT that may or may not count
}

func (j *job) addChannel(c *conn, local, remote *host) *channel {
	c.name = fmt.Sprintf("channel %d-%d", local.rank, remote.rank)
	ch := &channel{t: j.t, j: j, c: c, local: local, remote: remote, change: make(chan struct{}), flow: map[pair]*window{}}
	j.channels = append(j.channels, ch)
	go ch.read()
	return ch
}

// changed wakes whoever waits. The caller holds mu.
func (ch *channel) changed() {
	close(ch.change)
	ch.change = make(chan struct{})
}

func (ch *channel) read() {
	_ = ch.c.tcp.SetReadDeadline(time.Time{})
	for {
		p, err := ch.readPacket()
		if err == nil {
			err = ch.take(p)
		}
		if err != nil {
			ch.end(err)
			return
		}
	}
}

func (ch *channel) end(err error) {
	if errors.Is(err, io.EOF) {
		ch.t.trace.add("<- %s: closed", ch.c.name)
	} else {
		ch.t.trace.add("<- %s: %v", ch.c.name, err)
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.err = err
	ch.changed()
	ch.j.control.broken(ch, err)
}

// readPacket reads a header and its data, and checks what must hold for every packet.
func (ch *channel) readPacket() (p packet, err error) {
	b := make([]byte, headerSize)
	if n, err := io.ReadFull(ch.c.tcp, b); err != nil {
		if n > 0 {
			return p, fmt.Errorf("the channel ends after %d bytes of a header", n)
		}
		return p, err
	}
	p = parsePacket(b)
	switch {
	case p.typ > pkFini:
		return p, fmt.Errorf("a packet of %v: %x", p.typ, b)
	case p.typ.hasData() && p.len > ch.j.datalen:
		return p, fmt.Errorf("pk_len %d is above the job's data length %d: %v", p.len, ch.j.datalen, &p)
	}
	if p.typ.hasData() {
		p.data = make([]byte, p.len)
		if n, err := io.ReadFull(ch.c.tcp, p.data); err != nil {
			return p, fmt.Errorf("the channel ends after %d of %d bytes of data of %v", n, p.len, &p)
		}
	}
	ch.t.trace.add("<- %s: %v", ch.c.name, &p)
	return p, nil
}

func (ch *channel) take(p packet) error {
	if p.typ == pkFini {
		return ch.takeFini()
	}
	if err := ch.plausible(&p); err != nil {
		return err
	}
	if err := ch.count(&p); err != nil {
		return err
	}
	if p.typ == pkProtoAck && !ch.watched(p.dest) {
		return nil
	}
	if q := ch.j.control.answered(&p); q != nil {
		ch.mu.Lock()
		defer ch.mu.Unlock()
		if q.late {
			ch.settled(pair{p.dest, p.src}, 1)
		}
		ch.changed()
		return nil
	}
	if ch.j.control.take(ch, p) {
		return nil
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.queue = append(ch.queue, p)
	ch.changed()
	return nil
}

func (ch *channel) takeFini() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.fini {
		return errors.New("a second FINI")
	}
	ch.fini = true
	ch.changed()
	return nil
}

func (ch *channel) plausible(p *packet) error {
	from, to := ch.remote.proc(p.src), ch.local.proc(p.dest)
	switch {
	case from == nil:
		return fmt.Errorf("pk_src %v is no proc of host %d: %v", p.src, ch.remote.rank, p)
	case to == nil:
		return fmt.Errorf("pk_dest %v is no proc of host %d: %v", p.dest, ch.local.rank, p)
	case ch.finished():
		if p.typ != pkProtoAck {
			return fmt.Errorf("after FINI: %v", p)
		}
	case p.typ.hasData() && uint64(p.len) > p.msglen:
		return fmt.Errorf("pk_len is above pk_msglen: %v", p)
	}
	return nil
}

func (h *host) proc(id procID) *proc {
	for _, p := range h.procs {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (ch *channel) finished() bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.fini
}

// watched reports whether the script wants to see PROTOACKs to that proc, and to send
// its own.
func (ch *channel) watched(p procID) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.manual && p != ch.j.control.self.id
}

// window returns the counters of the tester's proc a and the IUT's proc b. The caller
// holds mu.
func (ch *channel) window(a, b procID) *window {
	w := ch.flow[pair{a, b}]
	if w == nil {
		w = &window{}
		ch.flow[pair{a, b}] = w
	}
	return w
}

// count updates the window for a packet that came, and sends the PROTOACK that is due unless the
// script does that.
func (ch *channel) count(p *packet) error {
	ch.mu.Lock()
	w := ch.window(p.dest, p.src)
	a, h := int(ch.j.ackmark), int(ch.j.hiwater)
	if p.typ == pkProtoAck {
		w.acked++
		early := w.acked*a > w.sent+w.unsure
		ch.changed()
		ch.mu.Unlock()
		if early {
			return fmt.Errorf("PROTOACK number %d after %d packets of %v; one stands for %d", w.acked, w.sent, p.dest, a)
		}
		return nil
	}
	w.got++
	over := w.got-w.told*a > h
	due := (!ch.manual || p.dest == ch.j.control.self.id) && w.got-w.told*a >= a
	if due {
		w.told++
	}
	ch.mu.Unlock()
	if over {
		return fmt.Errorf("%v -> %v: %d packets without PROTOACK; hiwater is %d", p.src, p.dest, w.got-w.told*a, h)
	}
	if due {
		return ch.write(&packet{typ: pkProtoAck, src: p.dest, dest: p.src})
	}
	return nil
}

// handle makes the script see PROTOACKs and send its own, on this channel. Those of commands are
// not affected.
func (ch *channel) handle() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.manual = true
}

// counts updates the window for a packet that leaves.
func (ch *channel) counts(p *packet) {
	if p.typ.counted() {
		ch.mu.Lock()
		defer ch.mu.Unlock()
		ch.window(p.src, p.dest).sent++
	}
}

func (ch *channel) write(p *packet) error {
	ch.wmu.Lock()
	defer ch.wmu.Unlock()
	ch.counts(p)
	return ch.c.trySend(p.String(), p.bytes())
}

func (ch *channel) send(p packet) {
	if err := ch.write(&p); err != nil {
		ch.t.Fatalf("%s: %v cannot be sent: %v", ch.c.name, &p, err)
	}
}

// room reports whether one more packet may be sent now. The caller holds mu.
func (ch *channel) room(from, to procID) bool {
	w := ch.window(from, to)
	return w.sent-w.acked*int(ch.j.ackmark) < int(ch.j.hiwater)
}

// open waits until the window of a pair has room for one more packet, and reports whether it has.
func (ch *channel) open(from, to procID) (room bool) {
	ch.watchFor(ch.t.patience, func() bool {
		room = ch.room(from, to)
		return room || ch.err != nil
	})
	return room
}

// shut ends the case: open has given up.
func (ch *channel) shut(p *packet, what string) {
	if err := ch.failure(); err != nil {
		ch.t.Fatalf("%s: %s", ch.c.name, ending(err))
	}
	ch.t.Fatalf("%s: no PROTOACK from %v to %v within %v: %s", ch.c.name, p.dest, p.src, ch.t.patience, what)
}

// next returns the next packet that is the script's. what says what should come.
func (ch *channel) next(what string) (p packet) {
	came, err := false, error(nil)
	ch.watchFor(ch.t.patience, func() bool {
		if came, err = len(ch.queue) > 0, ch.err; came {
			p, ch.queue = ch.queue[0], ch.queue[1:]
		}
		return came || err != nil
	})
	switch {
	case came:
	case err != nil:
		ch.t.Fatalf("%s: %s did not come: %v", ch.c.name, what, ending(err))
	default:
		ch.t.Fatalf("%s: %s did not come within %v%s", ch.c.name, what, ch.t.patience, ch.j.control.because())
	}
	return p
}

func ending(err error) string {
	if errors.Is(err, io.EOF) {
		return "the channel was closed"
	}
	return err.Error()
}

func (ch *channel) expect(k pkType, what string) packet {
	p := ch.next(what)
	if p.typ != k {
		ch.t.Fatalf("%s: %v came where %s, a %v, should be", ch.c.name, &p, what, k)
	}
	return p
}

// empty ends the case if a packet has come that the script has not taken, or if
// something was wrong with one.
func (ch *channel) empty(why string) {
	ch.mu.Lock()
	queue, err := ch.queue, ch.err
	ch.mu.Unlock()
	if len(queue) > 0 {
		ch.t.Fatalf("%s: %v came: %s", ch.c.name, &queue[0], why)
	}
	if err != nil {
		ch.t.Fatalf("%s: %s: %s", ch.c.name, ending(err), why)
	}
}

// stays ends the case if something has come that must not, FINI included.
func (ch *channel) stays(why string) {
	ch.watchFor(glance, func() bool { return len(ch.queue) > 0 || ch.err != nil || ch.fini })
	ch.probe()
	ch.empty(why)
	if ch.finished() {
		ch.t.Fatalf("%s: FINI came: %s", ch.c.name, why)
	}
}

// failure is why nothing more comes, nil if something may.
func (ch *channel) failure() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.err
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

// ends waits for the end of the channel, and gives what ended it: io.EOF, or what was
// wrong. Packets before it are dropped.
func (ch *channel) ends(why string) error {
	if !ch.watchFor(ch.t.patience, func() bool { return ch.err != nil }) {
		ch.t.Fatalf("%s: it is still open after %v: %s", ch.c.name, ch.t.patience, why)
	}
	return ch.failure()
}

// hangUp closes our direction.
func (ch *channel) hangUp() {
	ch.t.trace.add("-> %s: closed", ch.c.name)
	_ = ch.c.tcp.CloseWrite()
}

func (ch *channel) takesFini() {
	ended := ch.watchFor(ch.t.patience, func() bool { return ch.fini || ch.err != nil })
	switch {
	case ch.finished():
	case ended:
		ch.t.Fatalf("%s: FINI did not come: %s", ch.c.name, ending(ch.failure()))
	default:
		ch.t.Fatalf("%s: FINI did not come within %v", ch.c.name, ch.t.patience)
	}
}
