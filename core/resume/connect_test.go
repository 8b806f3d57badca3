package resume

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// A HELLO that does not fit what the acceptor knows ends the Link or, if it is for
// another one or late, does nothing.
func TestBadHelloForTheAcceptor(t *testing.T) {
	sound := Hello{Epoch: 2, Oldest: 3, Received: 4, Ack: 2, Window: 100}
	for name, c := range map[string]struct {
		change func(h *Hello)
		want   error
		state  State
	}{
		"sound":                            {func(*Hello) {}, nil, Up},
		"other session":                    {func(h *Hello) { h.Session[3]++ }, ErrSession, Up},
		"epoch in use":                     {func(h *Hello) { h.Epoch = 1 }, ErrStale, Up},
		"epoch before":                     {func(h *Hello) { h.Epoch = 0 }, ErrStale, Up},
		"received what was not sent":       {func(h *Hello) { h.Received = 5 }, ErrAck, Failed},
		"delivered what was not received":  {func(h *Hello) { h.Ack, h.Received = 4, 3 }, ErrAck, Failed},
		"acknowledgement taken back":       {func(h *Hello) { h.Ack = 1 }, ErrAck, Failed},
		"received taken back":              {func(h *Hello) { h.Ack, h.Received = 1, 1 }, ErrAck, Failed},
		"cannot replay from where we are":  {func(h *Hello) { h.Oldest = 4 }, ErrSequence, Failed},
		"another window":                   {func(h *Hello) { h.Window = 99 }, ErrFrame, Failed},
		"epochs may jump":                  {func(h *Hello) { h.Epoch = 1 << 63 }, nil, Up},
		"everything is acknowledged":       {func(h *Hello) { h.Ack = 4 }, nil, Up},
		"less received than sent, no more": {func(h *Hello) { h.Received = 2 }, nil, Up},
	} {
		l, peer := acceptorOf(t, Config{Window: 8})
		say(peer, header{kind: kindData, length: 3, ack: 2}, "xyz")
		l.Pump()
		h := sound
		c.change(&h)
		_, y := linktest.Pair(1000)
		err := l.Accept(y, h)
		if s := l.Status(); !errors.Is(err, c.want) || s.State != c.state || s.State == Failed && !errors.Is(s.Err, c.want) {
			t.Errorf("%s: %v, then %v, %v; want %v", name, err, s.State, s.Err, c.want)
		}
	}
}

// diallerOf makes a dialler whose acceptor is the test. It has sent "abcd".
func diallerOf(t *testing.T) (l *Link, peer link.Link) {
	t.Helper()
	l = New(Config{Dialler: true, Window: 8})
	l.Send([][]byte{[]byte("abcd")})
	x, peer := linktest.Pair(1000)
	if err := l.Dial(x); err != nil {
		t.Fatal(err)
	}
	l.Pump()
	var a Arrival
	if h, ok, err := a.Read(peer); !ok || err != nil || h != (Hello{Epoch: 1, Window: 8}) {
		t.Fatalf("%+v, %v, %v", h, ok, err)
	}
	return l, peer
}

// The first frame of an acceptor: what is wrong with it costs the underlying link,
// unless it is the right session that does not fit.
func TestBadAnswerForTheDialler(t *testing.T) {
	sound := Hello{Epoch: 1, Window: 100}
	for name, c := range map[string]struct {
		change func(h *Hello)
		want   error
		state  State
	}{
		"sound":                         {func(*Hello) {}, nil, Up},
		"other session":                 {func(h *Hello) { h.Session[3]++ }, ErrSession, Detached},
		"other epoch":                   {func(h *Hello) { h.Epoch = 2 }, ErrStale, Detached},
		"received what was not sent":    {func(h *Hello) { h.Received = 1 }, ErrAck, Failed},
		"cannot replay from where I am": {func(h *Hello) { h.Oldest = 1 }, ErrSequence, Failed},
		"no window":                     {func(h *Hello) { h.Window = 0 }, ErrFrame, Detached},
	} {
		l, peer := diallerOf(t)
		h := sound
		c.change(&h)
		peer.Send([][]byte{h.Append(nil)})
		l.Pump()
		if s := l.Status(); s.State != c.state || !errors.Is(s.Err, c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, s.State, s.Err, c.state, c.want)
		}
	}
}

func TestAnswersThatAreNoHello(t *testing.T) {
	for name, c := range map[string]struct {
		h     header
		want  error
		state State
	}{
		"DATA":          {header{kind: kindData, flags: flagSum, length: 1}, ErrFrame, Detached},
		"no checksum":   {header{kind: kindData, length: 1}, ErrChecksum, Detached},
		"other version": {header{}, ErrChecksum, Detached},
		"GONE":          {header{kind: kindGone, flags: flagSum}, ErrGone, Failed},
	} {
		l, peer := diallerOf(t)
		say(peer, c.h, "x"[:c.h.length])
		l.Pump()
		if s := l.Status(); s.State != c.state || !errors.Is(s.Err, c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, s.State, s.Err, c.state, c.want)
		}
	}
}

// Bytes that are left in an underlying link do not count after the next one was
// installed, and events of the old one are not events of the new one.
func TestLateEventsOfAnOldLink(t *testing.T) {
	l, old := acceptorOf(t, Config{Window: 8})
	say(old, header{kind: kindData, length: 3}, "old")
	peer, y := linktest.Pair(1000)
	if err := l.Accept(y, Hello{Epoch: 5, Window: 100}); err != nil {
		t.Fatal(err)
	}
	say(old, header{kind: kindData, seq: 3, length: 3}, "old")
	l.Lost(1, errors.New("late"))
	p := &pair{t: t}
	if s := p.state(l, Up); s.Epoch != 5 {
		t.Error(s)
	}
	say(peer, header{kind: kindData, length: 3}, "new")
	p.recv(l, 100, "new")
	if _, err := old.Send([][]byte{{1}}); !errors.Is(err, link.ErrBroken) {
		t.Errorf("the old link is still open: %v", err)
	}
	cause := errors.New("its plugin died")
	l.Lost(5, cause)
	if s := p.state(l, Detached); !errors.Is(s.Err, cause) || s.Epoch != 5 {
		t.Error(s)
	}
	l.Lost(5, errors.New("again"))
	if s := p.state(l, Detached); !errors.Is(s.Err, cause) {
		t.Error(s)
	}
}

// Two underlying links that overtake each other: the older one is turned away.
func TestOvertaking(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.a, "once", 4)
	p.cut()
	x2, y2 := linktest.Pair(1000)
	x3, y3 := linktest.Pair(1000)
	p.a.Dial(x2)
	p.a.Dial(x3)
	p.accept(y3)
	p.pump()
	var late Arrival
	h, ok, err := late.Read(y2)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := p.b.Accept(y2, h); !errors.Is(err, ErrStale) {
		t.Error(err)
	}
	p.recv(p.b, 100, "once")
	p.state(p.a, Up)
	p.state(p.b, Up)
}

func TestWrongRolePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Dial":   func() { New(Config{}).Dial(nil) },
		"Accept": func() { New(Config{Dialler: true}).Accept(nil, Hello{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s by the wrong end", name)
				}
			}()
			f()
		}()
	}
}

func TestStateString(t *testing.T) {
	if s := Detached.String() + Closed.String() + State(9).String(); s != "DetachedClosedState(9)" {
		t.Error(s)
	}
}
