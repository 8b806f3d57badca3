package agree

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

func drawMessage(t *rapid.T, size int) message {
	ranks := rapid.SliceOfDistinct(rapid.IntRange(0, size-1), rapid.ID[int])
	acked := SetOf(ranks.Draw(t, "acked")...)
	low := rapid.Uint64().Draw(t, "low")
	return message{
		kind: kind(rapid.IntRange(int(contribute), int(recall)).Draw(t, "kind")), sequence: rapid.Uint64Min(low).Draw(t, "sequence"),
		value: value{
			flags: rapid.Uint64().Draw(t, "flags"), max: [2]uint64{rapid.Uint64().Draw(t, "first"), rapid.Uint64().Draw(t, "second")},
			low: low, failed: SetOf(ranks.Draw(t, "failed")...).union(acked), acked: acked,
		},
	}
}

func TestMessagesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 300).Draw(t, "size")
		m := drawMessage(t, size)
		b := m.append(nil, size)
		if len(b) > MaxMessage(size) || len(b) < minSize {
			t.Fatalf("%d bytes, at most %d", len(b), MaxMessage(size))
		}
		got, err := parse(b, size)
		if err != nil || got.kind != m.kind || got.sequence != m.sequence || !got.value.equal(m.value) {
			t.Fatalf("%+v became %+v, %v", m, got, err)
		}
		if _, err := parse(b[:len(b)-1], size); !errors.Is(err, ErrMessage) {
			t.Fatalf("a byte less: %v", err)
		}
		if _, err := parse(append(b, 0), size); !errors.Is(err, ErrMessage) {
			t.Fatalf("a byte more: %v", err)
		}
	})
}

// TestFewFailuresAreShort wants that a message is not longer for a large group.
func TestFewFailuresAreShort(t *testing.T) {
	site := make([]int, 0, 1000)
	for r := 5000; r < 6000; r++ {
		site = append(site, r)
	}
	m := message{kind: decide, value: value{failed: SetOf(append(site, 7)...)}}
	if n := len(m.append(nil, 100000)); n > headerSize+16 {
		t.Errorf("a site and a member of 100,000 take %d bytes", n)
	}
}

func TestMalformedMessages(t *testing.T) {
	const size = 20
	good := message{kind: contribute, sequence: 5, value: value{low: 5, failed: SetOf(3), acked: SetOf(3)}}.append(nil, size)
	sets := func(b ...byte) []byte { return append(bytes.Clone(good[:headerSize]), b...) }
	set := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	for name, b := range map[string][]byte{
		"empty":                   nil,
		"kind 0":                  set(0, 0),
		"kind 4":                  set(0, 4),
		"low above the sequence":  set(16, 6),
		"form 2":                  sets(2, 0, 0, 0),
		"many runs":               sets(0, 200, 1, 0, 0, 0),
		"a run that is too long":  sets(0, 1, 3, 17, 0, 0),
		"a run behind the end":    sets(0, 1, 20, 0, 0, 0),
		"a number without an end": sets(0, 1, 0x83),
		"a number in more bytes":  sets(0, 1, 0x83, 0, 0, 0, 0),
		"runs that touch":         sets(0, 2, 3, 0, 0, 0, 0, 0),
		"bits behind the end":     sets(1, 0, 0, 0x10, 0, 0),
		"a bitmap where a run is": sets(1, 8, 0, 0, 0, 0),
		"half a bitmap":           sets(0, 0, 1, 8),
		"acked but not failed":    sets(0, 0, 0, 1, 3, 0),
	} {
		if m, err := parse(b, size); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	if _, err := parse(good, size); err != nil {
		t.Error(err)
	}
}

// FuzzReceive gives a Member messages that nobody has checked.
func FuzzReceive(f *testing.F) {
	for k := contribute; k <= recall; k++ {
		f.Add(uint16(40), byte(1), message{kind: k, sequence: 1, value: value{failed: SetOf(3)}}.append(nil, 40))
	}
	f.Fuzz(func(t *testing.T, size uint16, from byte, data []byte) {
		defer watchdog.Start()()
		n := int(size)%1000 + 4
		m, err := New(Config{Size: n, Me: 2})
		if err != nil {
			t.Fatal(err)
		}
		if used := allocs.Bytes(func() {
			for range 3 {
				if _, err = m.Begin(Contribution{Flags: 1}); err != nil {
					t.Fatal(err)
				}
			}
			err = m.Receive(int(from), data)
			_ = m.Failed(0)
			_ = m.Receive(int(from), data)
		}); used > uint64(100*n+20*len(data))+allocs.MaxError {
			t.Errorf("%d bytes for a message of %d in a group of %d", used, len(data), n)
		}
		if len(m.agreements) > 4 || len(m.messages) > 4+3*n {
			t.Errorf("%d agreements, %d messages", len(m.agreements), len(m.messages))
		}
		in, bad := parse(data, n)
		switch {
		case bad != nil:
			if err == nil && !m.failed.Has(int(from)) {
				t.Errorf("%q was taken", data)
			}
		case !bytes.Equal(in.append(nil, n), data):
			t.Errorf("%q came back as %q", data, in.append(nil, n))
		}
	})
}
