package resume

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// acceptorOf makes an acceptor whose dialler is the test: it has sent "abcd" in
// answer to a dialler that has nothing yet and takes 100 bytes.
func acceptorOf(t *testing.T, c Config) (l *Link, peer link.Link) {
	t.Helper()
	l = New(c)
	peer, y := linktest.Pair(10_000)
	l.Send([][]byte{[]byte("abcd")})
	if err := l.Accept(y, Hello{Epoch: 1, Window: 100}); err != nil {
		t.Fatal(err)
	}
	return l, peer
}

// say sends a frame, with a checksum if the link has them.
func say(peer link.Link, h header, body string) {
	if h.flags&flagSum != 0 {
		h.sum = checksum(0, []byte(body))
	}
	b := make([]byte, headerSize)
	h.put(b)
	peer.Send([][]byte{b, []byte(body)})
}

// Each rule that a peer can break on a link that is up ends the Link, for good.
func TestBadFrames(t *testing.T) {
	data := func(seq, ack uint64, n uint32) header { return header{kind: kindData, seq: seq, ack: ack, length: n} }
	for name, c := range map[string]struct {
		frames []header
		body   string
		want   error
	}{
		"gap":                       {frames: []header{data(1, 0, 1)}, want: ErrSequence},
		"repetition":                {frames: []header{data(0, 0, 2), data(1, 0, 1)}, body: "xx", want: ErrSequence},
		"gap before FIN":            {frames: []header{{kind: kindFin, seq: 1}}, want: ErrSequence},
		"gap before ACK":            {frames: []header{{kind: kindAck, seq: 1}}, want: ErrSequence},
		"huge sequence":             {frames: []header{data(1<<64-1, 0, 1)}, want: ErrSequence},
		"DATA behind FIN":           {frames: []header{{kind: kindFin}, data(0, 0, 1)}, want: ErrSequence},
		"DATA behind FIN, in order": {frames: []header{{kind: kindFin}, data(1, 0, 1)}, want: ErrSequence},
		"FIN behind FIN":            {frames: []header{{kind: kindFin}, {kind: kindFin, seq: 1}}, want: ErrSequence},
		"GONE with sequence":        {frames: []header{{kind: kindGone, flags: flagSum, seq: 1}}, want: ErrSequence},
		"ack of what was not sent":  {frames: []header{{kind: kindAck, ack: 5}}, want: ErrAck},
		"huge ack":                  {frames: []header{{kind: kindAck, ack: 1<<64 - 1}}, want: ErrAck},
		"ack taken back":            {frames: []header{{kind: kindAck, ack: 3}, {kind: kindAck, ack: 2}}, want: ErrAck},
		"more than the window":      {frames: []header{data(0, 0, 9)}, want: ErrWindow},
		"more than is left of it":   {frames: []header{data(0, 0, 5), data(5, 0, 4)}, body: "xxxxx", want: ErrWindow},
		"4 GiB":                     {frames: []header{data(0, 0, 1<<32-1)}, want: ErrWindow},
		"second HELLO":              {frames: []header{{kind: kindHello, flags: flagSum, length: helloBody}}, want: ErrFrame},
		"checksum not agreed":       {frames: []header{{kind: kindAck, flags: flagSum}}, want: ErrFrame},
		"type 0":                    {frames: []header{{}}, want: ErrFrame},
		"GONE":                      {frames: []header{{kind: kindGone, flags: flagSum, ack: 4}}, want: ErrGone},
	} {
		l, peer := acceptorOf(t, Config{Window: 8})
		for _, h := range c.frames {
			say(peer, h, c.body)
			c.body = ""
		}
		l.Pump()
		s := l.Status()
		if s.State != Failed || !errors.Is(s.Err, c.want) || !errors.Is(s.Err, link.ErrBroken) {
			t.Errorf("%s: %v, %v; want %v", name, s.State, s.Err, c.want)
		}
		if _, err := l.Send([][]byte{{1}}); err != s.Err {
			t.Errorf("%s: Send gives %v", name, err)
		}
	}
}

// What is allowed to the last byte.
func TestGoodFrames(t *testing.T) {
	l, peer := acceptorOf(t, Config{Window: 8})
	for _, h := range []header{
		{kind: kindData, length: 8, ack: 1}, {kind: kindAck, seq: 8, ack: 4}, {kind: kindFin, seq: 8, ack: 4}, {kind: kindAck, seq: 9, ack: 4},
	} {
		say(peer, h, "01234567"[:h.length])
	}
	p := &pair{t: t}
	l.Pump()
	p.state(l, Up)
	p.recv(l, 100, "01234567")
}

// Damage on the way is not the peer's fault: the next underlying link replays.
func TestDamageCostsTheUnderlyingLinkOnly(t *testing.T) {
	p := newPair(t, Config{Checksum: true})
	for _, damage := range []header{
		{kind: kindData, length: 3, sum: 1},
		{kind: kindAck, flags: flagSum, seq: 77},
	} {
		l, peer := acceptorOf(t, Config{Window: 8, Checksum: true})
		b := make([]byte, headerSize)
		damage.flags = flagSum
		damage.put(b)
		if damage.kind == kindAck {
			b[15]++
		}
		peer.Send([][]byte{b, []byte("xyz")[:damage.length]})
		p.recv(l, 100, "")
		if s := p.state(l, Detached); !errors.Is(s.Err, ErrChecksum) {
			t.Error(s.Err)
		}
		again, y := linktest.Pair(1000)
		if err := l.Accept(y, Hello{Epoch: 2, Window: 100}); err != nil {
			t.Fatal(err)
		}
		say(again, header{kind: kindData, flags: flagSum, length: 3}, "abc")
		p.recv(l, 100, "abc")
	}
}

// Nothing reaches the user before its checksum is right.
func TestChecksumComesFirst(t *testing.T) {
	l, peer := acceptorOf(t, Config{Checksum: true})
	b := make([]byte, headerSize)
	h := header{kind: kindData, flags: flagSum, length: 3, sum: checksum(0, []byte("xyz"))}
	h.put(b)
	p := &pair{t: t}
	peer.Send([][]byte{b, []byte("xy")})
	p.recv(l, 100, "")
	peer.Send([][]byte{[]byte("z")})
	p.recv(l, 2, "xy")
	p.recv(l, 2, "z")
}

// A peer that sends without pause does not keep a call from returning.
func TestCallsComeBack(t *testing.T) {
	l, peer := acceptorOf(t, Config{})
	for range 250 {
		say(peer, header{kind: kindAck}, "")
	}
	calls := 0
	for l.Pump() {
		calls++
		for range 250 {
			say(peer, header{kind: kindAck}, "")
		}
		if calls == 10 {
			return
		}
	}
	t.Errorf("%d calls", calls)
}
