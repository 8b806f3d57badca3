package resume

import (
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

var someHello = Hello{
	Session: ResumableID{0: 0xa0, 15: 0xaf}, Epoch: 7, Oldest: 0x100, Received: 0x200, Ack: 0x180, Window: 0x10000, Checksum: true,
}

// appendRefusal appends to b what an acceptor answers to a HELLO for a session that it does
// not know, before it closes the underlying link. The dialler's Link then fails with
// ErrGone and does not try again.
func appendRefusal(b []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, headerSize)...)
	head := header{kind: kindGone, flags: flagSum}
	head.put(b[at:])
	return b
}

func TestHelloBytes(t *testing.T) {
	want := hex.EncodeToString(unhex(t, `
		01 01 0003 00000028 0000000000000100 0000000000000180 d884f88e 6405b3a3
		a00000000000000000000000000000af 0000000000000007 0000000000000200 00010000 00000000`))
	b := someHello.Append([]byte("x"))[1:]
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if h, err := ParseHello(b); err != nil || h != someHello {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestBadHellos(t *testing.T) {
	resum := func(b []byte) { // as somebody does who means what he says
		h, _ := parseHeader(b, false)
		h.sum = checksum(0, b[headerSize:])
		h.put(b)
	}
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		want   error
	}{
		"short":        {func(b []byte) []byte { return b[:HelloSize-1] }, ErrFrame},
		"empty":        {func([]byte) []byte { return nil }, ErrFrame},
		"damage":       {func(b []byte) []byte { b[50]++; return b }, ErrChecksum},
		"damaged head": {func(b []byte) []byte { b[10]++; return b }, ErrChecksum},
		"no window":    {func(b []byte) []byte { clear(b[64:68]); resum(b); return b }, ErrFrame},
		"not the end":  {func(b []byte) []byte { b[71] = 1; resum(b); return b }, ErrFrame},
		"other frame":  {func([]byte) []byte { return append(appendRefusal(nil), make([]byte, helloBody)...) }, ErrFrame},
		"other version": {func(b []byte) []byte {
			b[0] = 2
			sum := checksum(0, b[:28])
			b[28], b[29], b[30], b[31] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
			return b
		}, ErrVersion},
	} {
		if h, err := ParseHello(c.change(someHello.Append(nil))); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v; want %v", name, h, err, c.want)
		}
	}
}

// Arrival takes a HELLO however it comes, and nothing behind it.
func TestArrival(t *testing.T) {
	x, y := linktest.Pair(1000)
	var a Arrival
	b := append(someHello.Append(nil), "more"...)
	for i := range b {
		if _, ok, err := a.Read(y); ok != (i >= HelloSize) || err != nil {
			t.Fatalf("after %d bytes: %v, %v", i, ok, err)
		}
		x.Send([][]byte{b[i : i+1]})
	}
	if h, ok, err := a.Read(y); !ok || err != nil || h != someHello {
		t.Errorf("%+v, %v, %v", h, ok, err)
	}
	rest := make([]byte, 10)
	if n, _ := y.Recv([][]byte{rest}); string(rest[:n]) != "more" {
		t.Errorf("left are %q", rest[:n])
	}
}

func TestArrivalOfOthers(t *testing.T) {
	x, y := linktest.Pair(1000)
	x.Send([][]byte{[]byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n")})
	if _, ok, err := new(Arrival).Read(y); ok || !errors.Is(err, ErrChecksum) {
		t.Error(ok, err)
	}
	x.Send([][]byte{someHello.Append(nil)[:50]})
	x.CloseSend()
	if _, ok, err := new(Arrival).Read(y); ok || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(ok, err)
	}
}
