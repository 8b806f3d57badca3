package message

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/wire"
)

func TestNewRefuses(t *testing.T) {
	good := Config{Directory: directoryOf(t, wire.Proc{PID: 1}, wire.Proc{PID: 2}), MaxData: 1, AckMark: 1, HiWater: 1}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"rank -1":        func(c *Config) { c.Self = -1 },
		"rank 2":         func(c *Config) { c.Self = 2 },
		"no data":        func(c *Config) { c.MaxData = 0 },
		"too much data":  func(c *Config) { c.MaxData = math.MaxUint32 },
		"no ackmark":     func(c *Config) { c.AckMark = 0 },
		"low hiwater":    func(c *Config) { c.AckMark = 2 },
		"no directory":   func(c *Config) { c.Directory = nil },
		"stage limit":    func(c *Config) { c.StageLimit = 1 << 20 },
		"stage limit -1": func(c *Config) { c.StageLimit = -1 },
		"first request":  func(c *Config) { c.FirstRequest = math.MaxUint64 },
	} {
		c := good
		change(&c)
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good.AckMark = 5
	if _, err := New(good); !errors.Is(err, flow.ErrLimits) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestDriverMistakesPanic(t *testing.T) {
	for name, f := range map[string]func(e *Engine){
		"attach twice":      func(e *Engine) { e.Attach(0) },
		"route twice":       func(e *Engine) { e.Attach(1); e.SetRoute(1, 1) },
		"route to nowhere":  func(e *Engine) { e.SetRoute(1, 9) },
		"route to oneself":  func(e *Engine) { e.SetRoute(0, 0) },
		"input of no link":  func(e *Engine) { e.Input(7) },
		"lose oneself":      func(e *Engine) { e.PeerDown(0, errCut) },
		"ask for nobody":    func(e *Engine) { e.Proc(2) },
		"forget the job":    func(e *Engine) { e.ForgetWorld(0) },
		"release twice":     func(e *Engine) { r := e.Recv(Envelope{}, 1, nil); e.Release(r); e.Release(r) },
		"release when done": func(e *Engine) { r := e.Send(1, Envelope{}, Standard, nil, 0, 0); e.Release(r); e.Release(r) },
	} {
		e := newPair(t, roomy).e[0]
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(e)
		}()
	}
}

// Asking about a link that is gone is allowed: drivers look at all links.
func TestDetachedLinkIsQuiet(t *testing.T) {
	e := newPair(t, roomy).e[0]
	e.Send(1, Envelope{}, Standard, []byte{1}, 0, 0)
	e.Detach(0, errCut)
	if e.HasOutput(0) || e.Output(0) != nil || !e.Idle() {
		t.Error("there is something left")
	}
	if _, ok := e.Route(1); ok {
		t.Error("there is a route")
	}
	if err := e.Unreachable(1); !errors.Is(err, ErrPeerDown) || !errors.Is(err, errCut) {
		t.Errorf("down because of %v", err)
	}
	e.SetRoute(1, 0) // too late, but no mistake of the driver
	e.Attach(0)      // the number may be used again
}

func TestCompletedCounts(t *testing.T) {
	p := newPair(t, roomy)
	p.recv(1, make([]byte, 8))
	p.send(0, Standard, make([]byte, 8))
	p.settle()
	if p.e[0].Completed() != 1 || p.e[1].Completed() != 1 {
		t.Errorf("%d and %d", p.e[0].Completed(), p.e[1].Completed())
	}
}

// Events changes with each thing that somebody may sleep for, and with each only
// once, so that counting tells whether there was more than one.
func TestEventsCount(t *testing.T) {
	p := newPair(t, Config{MaxData: 4000, AckMark: 10, HiWater: 20})
	e := p.e[0]
	last := e.Events()
	expect := func(what string, want uint64) {
		t.Helper()
		if got := e.Events() - last; got != want {
			t.Errorf("%s: %d events, want %d", what, got, want)
		}
		last = e.Events()
	}
	p.send(0, Standard, make([]byte, 8))
	expect("a send that is done at once", 1)
	r := p.recv(0, make([]byte, 8))
	expect("a posted receive", 0)
	p.send(1, Standard, make([]byte, 8))
	p.send(1, Synchronous, make([]byte, 8))
	p.settle()
	expect("a message for a receive, and one to be probed", 2)
	if !r.Done() {
		t.Error("the receive is not done")
	}
	p.recv(0, make([]byte, 8))
	expect("a receive whose message was there", 1)
	self := Envelope{Rank: 0, Tag: 9}
	e.Send(0, self, Synchronous, make([]byte, 8), 1, 0)
	expect("a message to oneself that can be probed", 1)
	e.Recv(self, 0, make([]byte, 8))
	expect("both ends of it", 2)
	if err := e.BufferSpace().Attach(20000); err != nil {
		t.Fatal(err)
	}
	p.send(0, Buffered, make([]byte, 10000))
	expect("a buffered send", 1)
	p.recv(1, make([]byte, 8))
	p.recv(1, make([]byte, 10000))
	p.settle()
	expect("the buffered send has left", 1)
}

func TestFinished(t *testing.T) {
	p := newPair(t, roomy)
	raw := make([]byte, headerSize)
	wire.Published.PutHeader(raw, &wire.Packet{Type: wire.PkFini})
	if p.e[0].Finished(0) {
		t.Fatal("before FINI")
	}
	put(t, p.e[0], 0, raw)
	if !p.e[0].Finished(0) {
		t.Fatal("after FINI")
	}
}

func TestPendingNamesEverything(t *testing.T) {
	p := newPair(t, Config{MaxData: 20000, AckMark: 2, HiWater: 4})
	e := p.e[0]
	p.recv(0, nil)                           // a receive
	p.send(0, Standard, make([]byte, 20000)) // on the link
	p.send(0, Synchronous, nil)              // waits for SYNCACK
	e.Cancel(p.send(0, Synchronous, nil))    // waits for the answer
	e.Output(0)
	p.send(0, Standard, nil)                               // the window is closed
	e.Send(0, Envelope{Tag: 9}, Standard, []byte{1}, 0, 0) // unexpected
	var b strings.Builder
	e.Dump(&b)
	for _, want := range []string{
		"recv peer=1 cid=0 rank=1 tag=7 bytes=0/-1: a message",
		"send peer=1 cid=0 rank=0 tag=7 bytes=20000/20000: the link",
		"send peer=1 cid=0 rank=0 tag=7 bytes=0/0: SYNCACK",
		"send peer=1 cid=0 rank=0 tag=7 bytes=0/0: the answer to CANCEL",
		"send peer=1 cid=0 rank=0 tag=7 bytes=0/0: PROTOACK, 4 packets are out",
		"message peer=0 cid=0 rank=0 tag=9 bytes=1/1: a receive",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing: %s\nin\n%s", want, b.String())
		}
	}
	for range e.Pending() {
		break
	}
}
