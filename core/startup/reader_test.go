package startup

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func onlyDone(c wire.Command) bool { return c == wire.CmdDone }

// TestReaderSkips: the payload of an unknown command is not even kept.
func TestReaderSkips(t *testing.T) {
	var r reader
	r.feed(wire.AppendCommand(nil, 0x51515151, 1000))
	for i := range 1000 {
		if _, ok, err := r.next(1000, onlyDone); ok || err != nil {
			t.Fatal(ok, err)
		}
		r.feed([]byte{byte(i)})
	}
	if len(r.buf) > wire.CommandSize || cap(r.buf) > 64 {
		t.Errorf("%d bytes were kept", len(r.buf))
	}
	r.feed(wire.AppendCommand(nil, wire.CmdDone, 0))
	if f, ok, err := r.next(1000, onlyDone); !ok || f.cmd != wire.CmdDone || err != nil {
		t.Errorf("%v %v %v", f, ok, err)
	}
}

// TestReaderClaims: a length reserves nothing.
func TestReaderClaims(t *testing.T) {
	var r reader
	r.feed(wire.AppendCommand(nil, wire.CmdDone, MaxAnswer))
	if _, ok, err := r.next(MaxAnswer, onlyDone); ok || err != nil || cap(r.buf) > 64 {
		t.Errorf("%v %v, %d bytes reserved", ok, err, cap(r.buf))
	}
}

func TestReaderLimits(t *testing.T) {
	for _, c := range []struct {
		n    int32
		want error
	}{{10, nil}, {11, ErrTooLong}, {1<<31 - 1, ErrTooLong}, {-1, ErrTooLong}, {-1 << 31, ErrTooLong}} {
		for _, cmd := range []wire.Command{wire.CmdDone, 0x51515151} {
			var r reader
			r.feed(wire.AppendCommand(nil, cmd, c.n))
			if _, _, err := r.next(10, onlyDone); !errors.Is(err, c.want) {
				t.Errorf("%v of %d bytes: %v", cmd, c.n, err)
			}
		}
	}
}

// TestReaderLeavesNoGarbage: what was used is not kept.
func TestReaderLeavesNoGarbage(t *testing.T) {
	var r reader
	for i := range 1000 {
		b := append(wire.AppendCommand(nil, wire.CmdDone, 10), make([]byte, 10)...)
		r.feed(b[:9])
		r.next(10, onlyDone)
		r.feed(append(b[9:], b[:5]...)) // never empty between two commands
		if _, ok, _ := r.next(10, onlyDone); !ok {
			t.Fatal(i)
		}
		r.feed(b[5:])
		if _, ok, _ := r.next(10, onlyDone); !ok {
			t.Fatal(i)
		}
	}
	if cap(r.buf) > 256 {
		t.Errorf("%d bytes are kept", cap(r.buf))
	}
}
