package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

func TestCommandNames(t *testing.T) {
	for c, want := range map[Command]string{
		CmdAuth: "AUTH", CmdIMPI: "IMPI", CmdColl: "COLL", CmdDone: "DONE", CmdFini: "FINI",
		CmdFiniReversed: "INIF", CmdFail: "FAIL", 0x41414100: "0x41414100", 0: "0x00000000",
	} {
		if have := c.String(); have != want {
			t.Errorf("%08x is %q, want %q", uint32(c), have, want)
		}
	}
}

// TestCommandNegativeLength: a length is Int4, and the receiver must see that
// it is negative.
func TestCommandNegativeLength(t *testing.T) {
	if _, n := ParseCommand([]byte{'C', 'O', 'L', 'L', 0xff, 0xff, 0xff, 0xff}); n != -1 {
		t.Errorf("length %d, want -1", n)
	}
}

func TestCommandRoundTrip(t *testing.T) {
	b := AppendCommand(nil, CmdColl, 1<<31-1)
	if len(b) != CommandSize {
		t.Errorf("a command header of %d bytes", len(b))
	}
	if c, n := ParseCommand(b); c != CmdColl || n != 1<<31-1 {
		t.Errorf("read %v %d", c, n)
	}
}

func TestPayloadSizes(t *testing.T) {
	for _, n := range []int{0, 3, 5} {
		want := ErrShort
		if n > 4 {
			want = ErrLong
		}
		if _, err := ParseIMPI(make([]byte, n)); !errors.Is(err, want) {
			t.Errorf("IMPI of %d bytes: %v", n, err)
		}
		if _, err := ParseAuth(make([]byte, n)); !errors.Is(err, want) {
			t.Errorf("AUTH of %d bytes: %v", n, err)
		}
	}
	if _, _, err := ParseColl(make([]byte, 3)); !errors.Is(err, ErrShort) {
		t.Errorf("COLL without label: %v", err)
	}
	if _, _, _, err := ParseAnswer(make([]byte, 7)); !errors.Is(err, ErrShort) {
		t.Errorf("answer without mask: %v", err)
	}
}

func TestFailIsBounded(t *testing.T) {
	b := AppendFail(nil, strings.Repeat("x", MaxFail+1))
	if c, n := ParseCommand(b); c != CmdFail || n != MaxFail || len(b) != CommandSize+MaxFail {
		t.Errorf("%v of %d bytes, %d in all", c, n, len(b))
	}
}

func TestAuthMask(t *testing.T) {
	both := AuthNone | AuthKey
	if !both.Has(MechKey) || !both.Has(MechNone) || AuthNone.Has(MechKey) || both.Has(-1) || both.Has(32) {
		t.Error("Has is wrong")
	}
	for m, want := range map[AuthMask]string{0: "nothing", AuthNone: "NONE", both: "NONE+KEY", 4: "0x4", 6: "KEY+0x4"} {
		if m.String() != want {
			t.Errorf("mask %d is %q, want %q", m, m, want)
		}
	}
	if m, n := ParseAuthChoice([]byte{0, 0, 0, 1, 0, 0, 0, 8}); m != MechKey || n != 8 {
		t.Errorf("choice %v %d", m, n)
	}
	if MechKey.String() != "KEY" || MechNone.String() != "NONE" || Mechanism(7).String() != "MECHANISM(7)" {
		t.Error("mechanism names")
	}
}

func TestStartupAllocatesNothing(t *testing.T) {
	b := make([]byte, 0, 256)
	data := []byte{0, 0, 0, 1}
	if n := testing.AllocsPerRun(100, func() {
		b = AppendColl(b[:0], LabelNHosts, data)
		c, n := ParseCommand(b)
		l, d, err := ParseColl(b[CommandSize:])
		if c != CmdColl || n != 8 || l != LabelNHosts || len(d) != 4 || err != nil {
			t.Fatal("round trip")
		}
		b = append(AppendAnswer(b[:0], LabelNHosts, 3, len(data)), data...)
		if _, m, _, err := ParseAnswer(b[CommandSize:]); m != 3 || err != nil {
			t.Fatal("round trip")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCommand(f *testing.F) {
	for _, b := range loadGolden(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		if len(b) < CommandSize {
			return
		}
		c, n := ParseCommand(b)
		if again := AppendCommand(nil, c, n); !bytes.Equal(again, b[:CommandSize]) {
			t.Fatalf("%x became %x", b[:CommandSize], again)
		}
		_ = c.String()
		payload := b[CommandSize:]
		if l, data, err := ParseColl(payload); err == nil {
			_ = l.String()
			if again := AppendColl(nil, l, data); !bytes.Equal(again[CommandSize:], payload) {
				t.Fatalf("COLL %x became %x", payload, again)
			}
		}
		if l, m, data, err := ParseAnswer(payload); err == nil {
			_ = m.String()
			again := append(AppendAnswer(nil, l, m, len(data)), data...)
			if !bytes.Equal(again[CommandSize:], payload) {
				t.Fatalf("answer %x became %x", payload, again)
			}
		}
		if v, err := ParseIMPI(payload); err == nil && !bytes.Equal(AppendIMPI(nil, v)[CommandSize:], payload) {
			t.Fatalf("IMPI %x", payload)
		}
		if m, err := ParseAuth(payload); err == nil && !bytes.Equal(AppendAuth(nil, m)[CommandSize:], payload) {
			t.Fatalf("AUTH %x", payload)
		}
	})
}
