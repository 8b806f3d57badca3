package resume

import (
	"bytes"
	"errors"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// A HELLO is read in one way only, and written the same way again.
func FuzzParseHello(f *testing.F) {
	f.Add(someHello.Append(nil))
	f.Add((&Hello{Window: 1}).Append(nil))
	f.Add(appendRefusal(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHello(b)
		if err == nil && !bytes.Equal(h.Append(nil), b[:HelloSize]) {
			t.Errorf("%x is read as %+v", b, h)
		}
	})
}

func FuzzParseHeader(f *testing.F) {
	for _, h := range []header{{kind: kindData, length: 3, seq: 1, ack: 2}, {kind: kindGone, flags: flagSum}, {kind: kindFin}} {
		var b [headerSize]byte
		h.put(b[:])
		f.Add(b[:], h.flags != 0)
	}
	f.Fuzz(func(t *testing.T, b []byte, summed bool) {
		if len(b) < headerSize {
			return
		}
		h, err := parseHeader(b, summed)
		var again [headerSize]byte
		if h.put(again[:]); err == nil && !bytes.Equal(again[:], b[:headerSize]) {
			t.Errorf("%x is read as %+v", b, h)
		}
	})
}

// Whatever a peer says: no panic, no more memory than the window, no position that
// cannot be, and an error that has a name. The first byte of the input says what
// kind of Link gets the rest, and how it is cut.
func FuzzInput(f *testing.F) {
	frame := func(b []byte, h header, body string) []byte {
		if h.flags&flagSum != 0 {
			h.sum = checksum(0, []byte(body))
		}
		b = append(b, make([]byte, headerSize)...)
		h.put(b[len(b)-headerSize:])
		return append(b, body...)
	}
	up := frame([]byte{0}, header{kind: kindData, length: 5, ack: 3}, "hello")
	up = frame(up, header{kind: kindAck, seq: 5, ack: 4}, "")
	f.Add(frame(up, header{kind: kindFin, seq: 5, ack: 4}, ""))
	f.Add(frame(up, header{kind: kindGone, flags: flagSum, ack: 4}, ""))
	f.Add(frame([]byte{4}, header{kind: kindData, flags: flagSum, length: 2}, "hi"))
	f.Add(frame((&Hello{Epoch: 1, Window: 8}).Append([]byte{2}), header{kind: kindAck}, ""))
	f.Add(appendRefusal([]byte{3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		mode, b := b[0], b[1:]
		l, peer := acceptorOf(t, Config{Window: 8, Checksum: mode&4 != 0})
		if mode&2 != 0 {
			l, peer = diallerOf(t)
		}
		size := 1 + int(mode>>3)
		buf := make([]byte, 5)
		for ; len(b) > 0; b = b[min(size, len(b)):] {
			if _, err := peer.Send([][]byte{b[:min(size, len(b))]}); err != nil {
				break
			}
			if mode&1 != 0 {
				l.Pump()
			}
			l.Recv([][]byte{buf})
			plausible(t, l)
		}
	})
}

// plausible looks at what any peer must not be able to spoil.
func plausible(t *testing.T, l *Link) {
	o, i := &l.out, &l.in
	switch {
	case len(i.buf) > 8 || len(o.buf) > 8:
		t.Fatalf("buffers of %d and %d bytes", len(i.buf), len(o.buf))
	case i.delivered > i.have || i.have-i.delivered+l.rx.got > 8:
		t.Fatalf("%d received, %d delivered, %d on top", i.have, i.delivered, l.rx.got)
	case o.acked > o.next || o.next > o.reached || o.reached > o.end:
		t.Fatalf("acked %d, next %d, reached %d, end %d", o.acked, o.next, o.reached, o.end)
	}
	s := l.Status()
	if s.State != Failed && s.State != Detached {
		return
	}
	for _, known := range []error{ErrVersion, ErrFrame, ErrSequence, ErrAck, ErrWindow, ErrChecksum, ErrSession, ErrStale, ErrGone} {
		if errors.Is(s.Err, known) && (s.State == Detached || errors.Is(s.Err, link.ErrBroken)) {
			return
		}
	}
	t.Fatalf("%v: %v", s.State, s.Err)
}
