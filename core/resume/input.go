package resume

import (
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// maxSteps bounds how often one call of ours reads from the underlying link, so that a peer
// that sends without pause does not keep the caller for ever.
const maxSteps = 256

// reader is the frame that is being received.
type reader struct {
	n    int             // bytes of buf that have come
	left uint64          // DATA: bytes that have not come yet
	got  uint64          // DATA with a checksum: bytes in the ring after have
	buf  [HelloSize]byte // the header, and the rest of a HELLO
	head header          // complete once n is at least headerSize
}

// drain receives into the ring until the underlying link has no more.
func (l *state) drain() (received bool) {
	for range maxSteps {
		if l.lower == nil || !l.step() {
			break
		}
		received = true
	}
	return received
}

// receive fills dst, from the ring and then from the underlying link.
func (l *state) receive() {
	owed, before := l.out.owed, l.in.delivered
	for range maxSteps {
		l.dst = l.in.deliver(l.dst)
		if l.out.owed > owed && l.in.delivered == before && l.in.delivered == l.in.have {
			return
		}
		if link.Len(l.dst) == 0 || l.lower == nil || !l.step() {
			break
		}
	}
	l.dst = l.in.deliver(l.dst)
}

// step reads once from the underlying link, which must exist, and handles a frame that is
// complete then. It reports whether anything was read.
func (l *state) step() bool {
	r := &l.rx
	if r.left > 0 {
		return l.stepData()
	}
	want := headerSize
	if r.n >= headerSize {
		want = HelloSize
	}
	l.scratch = append(l.scratch[:0], r.buf[r.n:want])
	n := l.pull()
	r.n += n
	if n == 0 || r.n < want {
		return n > 0
	}
	var err error
	if want == headerSize {
		err = l.begin()
	} else {
		err = l.welcome()
	}
	if err != nil {
		l.reject(err)
	}
	return true
}

func (l *state) pull() int {
	n, err := l.lower.Recv(l.scratch)
	clear(l.scratch)
	if err == nil {
		return n
	}
	if err == io.EOF { //nolint:errorlint // links report io.EOF itself
		err = fmt.Errorf("the underlying link ended: %w", io.ErrUnexpectedEOF)
	}
	l.lose(err)
	return 0
}

// reject handles a wrong frame (docs/decisions/0015-link-resume.md). It ends the underlying
// link if the network is to blame or the frame was the first one, and otherwise the Link.
func (l *state) reject(err error) {
	if l.joining || errors.Is(err, ErrChecksum) {
		l.lose(err)
		return
	}
	l.fail(err)
}

func (l *state) begin() error {
	r := &l.rx
	h, err := parseHeader(r.buf[:], l.summed || l.joining)
	if err != nil {
		return err
	}
	r.head = h
	switch {
	case h.kind == kindGone && l.joining:
		l.fail(fmt.Errorf("%w: it does not know the session", ErrGone))
		return nil
	case (h.kind == kindHello) != l.joining:
		return fmt.Errorf("%w: %v is out of place", ErrFrame, h.kind)
	case h.kind == kindHello:
		return nil
	case h.kind != kindGone && (h.flags&flagSum != 0) != l.summed:
		return fmt.Errorf("%w: %v with flags %#x, not as agreed", ErrFrame, h.kind, h.flags)
	}
	r.n = 0
	if err := l.acknowledge(h.ack); err != nil {
		return fmt.Errorf("%v: %w", h.kind, err)
	}
	return l.enter(&h)
}

// acknowledge handles an acknowledgement, which means delivered
// (docs/decisions/0015-link-resume.md).
func (l *state) acknowledge(ack uint64) error {
	if o := &l.out; ack < o.acked || ack > o.next {
		return fmt.Errorf("%w: of position %d, not between %d, known before, and %d, sent", ErrAck, ack, o.acked, o.next)
	}
	l.out.acknowledge(ack)
	return nil
}

// enter handles a frame of the stream: DATA or FIN.
func (l *state) enter(h *header) error {
	in := &l.in
	if h.kind != kindGone && h.seq != in.received() {
		return fmt.Errorf("%v: %w: position %d instead of %d", h.kind, ErrSequence, h.seq, in.received())
	}
	switch h.kind {
	case kindData:
		if in.fin {
			return fmt.Errorf("DATA: %w: behind the end at %d", ErrSequence, in.have)
		}
		if room := l.window - (in.have - in.delivered); uint64(h.length) > room {
			return fmt.Errorf("DATA: %w: %d, and there is room for %d", ErrWindow, h.length, room)
		}
		l.rx.left = uint64(h.length)
	case kindFin:
		if in.fin {
			return fmt.Errorf("FIN: %w: behind the end at %d", ErrSequence, in.have)
		}
		in.fin = true
		l.setPlain()
	case kindGone:
		if h.seq != 0 {
			return fmt.Errorf("GONE: %w: position %d instead of 0", ErrSequence, h.seq)
		}
		l.fail(ErrGone)
	case kindAck, kindHello: // ACK contains only the acknowledgement, which was handled; a HELLO never gets here
	}
	return nil
}

// welcome handles the acceptor's HELLO, for which the dialler waits
// (docs/decisions/0015-link-resume.md).
func (l *state) welcome() error {
	r := &l.rx
	h, err := parseHello(&r.head, r.buf[headerSize:])
	r.n = 0
	switch {
	case err != nil:
		return err
	case h.Session != l.config.Session:
		return fmt.Errorf("HELLO: %w: %v", ErrSession, h.Session)
	case h.Epoch != l.epoch:
		return fmt.Errorf("HELLO: %w: epoch %d", ErrStale, h.Epoch)
	}
	if err := l.check(&h); err != nil {
		l.fail(err)
		return nil
	}
	l.adopt(&h)
	return nil
}

// mostAhead is how many bytes at once are read into the ring, whose memory grows by what is
// read, and not by what a frame announces.
const mostAhead = 256 << 10

// stepData reads bytes of a DATA frame: into dst if they are the next ones for the user and
// need no check, otherwise into the ring.
func (l *state) stepData() bool {
	in, r := &l.in, &l.rx
	direct := !l.summed && len(l.dst) > 0 && in.delivered == in.have
	if direct {
		l.scratch = link.Front(l.scratch, l.dst, int(r.left))
	} else {
		at, n := in.have+r.got, min(r.left, mostAhead)
		in.reserve(in.delivered, at, at-in.delivered+n)
		l.scratch = in.parts(l.scratch[:0], at, n)
	}
	n := uint64(l.pull())
	if n == 0 {
		return false
	}
	r.left -= n
	switch {
	case direct:
		in.have += n
		in.delivered += n
		l.dst = link.Advance(l.dst, int(n))
	case l.summed:
		r.got += n
		if r.left == 0 {
			l.verify()
		}
	default:
		in.have += n
	}
	return true
}

// verify checks the checksum of a DATA frame that is complete
// (docs/decisions/0015-link-resume.md: checksums are a choice).
func (l *state) verify() {
	in, r := &l.in, &l.rx
	l.scratch = in.parts(l.scratch[:0], in.have, r.got)
	sum := sum(l.scratch)
	clear(l.scratch)
	if sum != r.head.sum {
		l.reject(fmt.Errorf("DATA at position %d: %w: %08x, not %08x", in.have, ErrChecksum, sum, r.head.sum))
		return
	}
	in.have += r.got
	r.got = 0
}
