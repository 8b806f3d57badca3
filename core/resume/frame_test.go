package resume

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// unhex reads bytes that are grouped for the reader's sake.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		h     header
		bytes string
	}{
		{
			header{kind: kindData, length: 0x10000, seq: 0x1122334455667788, ack: 0x99},
			"01 02 0000 00010000 1122334455667788 0000000000000099 00000000 00000000",
		},
		{
			header{kind: kindData, flags: flagSum, length: 2, seq: 1, ack: 2, sum: 0xdeadbeef},
			"01 02 0001 00000002 0000000000000001 0000000000000002 deadbeef 24ca822e",
		},
		{
			header{kind: kindAck, seq: 5, ack: 6},
			"01 03 0000 00000000 0000000000000005 0000000000000006 00000000 00000000",
		},
		{
			header{kind: kindFin, seq: 5, ack: 6},
			"01 04 0000 00000000 0000000000000005 0000000000000006 00000000 00000000",
		},
		{
			header{kind: kindGone, flags: flagSum},
			"01 05 0001 00000000 0000000000000000 0000000000000000 00000000 58c02911",
		},
	} {
		var b [headerSize]byte
		c.h.put(b[:])
		if got, want := hex.EncodeToString(b[:]), hex.EncodeToString(unhex(t, c.bytes)); got != want {
			t.Errorf("%+v is %s, not %s", c.h, got, want)
		}
		h, err := parseHeader(b[:], c.h.flags != 0)
		if err != nil || h != c.h {
			t.Errorf("%+v comes back as %+v, %v", c.h, h, err)
		}
	}
}

func TestRefusalBytes(t *testing.T) {
	h, err := parseHeader(appendRefusal([]byte("x"))[1:], true)
	if err != nil || h != (header{kind: kindGone, flags: flagSum}) {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestBadHeaders(t *testing.T) {
	sound := header{kind: kindData, length: 1}
	change := func(f func(h *header)) header {
		h := sound
		f(&h)
		return h
	}
	for name, c := range map[string]struct {
		h      header
		broken func(b []byte)
		summed bool
		want   error
	}{
		"other version":             {h: sound, broken: func(b []byte) { b[0] = 2 }, want: ErrVersion},
		"type 0":                    {h: change(func(h *header) { h.kind = 0 }), want: ErrFrame},
		"type 6":                    {h: change(func(h *header) { h.kind = 6 }), want: ErrFrame},
		"unknown flag":              {h: change(func(h *header) { h.flags = 4 }), want: ErrFrame},
		"HELLO's flag":              {h: change(func(h *header) { h.flags = flagWantSum }), want: ErrFrame},
		"DATA without bytes":        {h: change(func(h *header) { h.length = 0 }), want: ErrFrame},
		"ACK with bytes":            {h: change(func(h *header) { h.kind = kindAck }), want: ErrFrame},
		"FIN with bytes":            {h: change(func(h *header) { h.kind = kindFin }), want: ErrFrame},
		"GONE with bytes":           {h: change(func(h *header) { h.kind, h.flags = kindGone, flagSum }), want: ErrFrame},
		"GONE without checksum":     {h: header{kind: kindGone}, want: ErrFrame},
		"HELLO without checksum":    {h: header{kind: kindHello, length: helloBody}, want: ErrFrame},
		"short HELLO":               {h: header{kind: kindHello, flags: flagSum, length: helloBody - 1}, want: ErrFrame},
		"missing checksum":          {h: sound, summed: true, want: ErrChecksum},
		"no flag":                   {h: sound, broken: func(b []byte) { copy(b[28:], "\x1d\x35\xbd\x12") }, want: ErrFrame},
		"sum without flag":          {h: change(func(h *header) { h.sum = 1 }), want: ErrFrame},
		"sum of nothing":            {h: header{kind: kindAck, flags: flagSum, sum: 1}, want: ErrFrame},
		"damage":                    {h: change(func(h *header) { h.flags = flagSum }), broken: func(b []byte) { b[9] ^= 1 }, want: ErrChecksum},
		"damaged version":           {h: change(func(h *header) { h.flags = flagSum }), broken: func(b []byte) { b[0] ^= 1 }, want: ErrChecksum},
		"damaged flag, sums agreed": {h: change(func(h *header) { h.flags = flagSum }), broken: func(b []byte) { b[3] ^= 1 }, summed: true, want: ErrChecksum},
	} {
		var b [headerSize]byte
		c.h.put(b[:])
		if c.broken != nil {
			c.broken(b[:])
		}
		if h, err := parseHeader(b[:], c.summed); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v; want %v", name, h, err, c.want)
		}
	}
}

func TestKindString(t *testing.T) {
	if s := kindGone.String() + ", " + kind(9).String(); s != "GONE, frame of type 9" {
		t.Error(s)
	}
}
