package message

import (
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// In the steady state no message costs an allocation, whichever way it takes.
func TestNoAllocations(t *testing.T) {
	small := Config{MaxData: 64, AckMark: 2, HiWater: 4}
	for _, c := range []struct {
		name string
		cfg  Config
		n    int
		mode Mode
		late bool // the receive comes after the message
	}{
		{"short", roomy, 8, Standard, false},
		{"empty", roomy, 0, Standard, false},
		{"unexpected", roomy, 8, Standard, true},
		{"synchronous", roomy, 8, Synchronous, false},
		{"synchronous unexpected", roomy, 8, Synchronous, true},
		{"from the user's buffer", roomy, 30000, Standard, false},
		{"from the user's buffer, unexpected", roomy, 30000, Standard, true},
		{"long", roomy, 300000, Standard, false},
		{"long unexpected", roomy, 300000, Standard, true},
		{"long, small window", small, 5000, Standard, false},
		{"long, small window, unexpected", small, 5000, Synchronous, true},
		{"buffered", roomy, 8, Buffered, false},
		{"buffered large", roomy, 60000, Buffered, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, c.cfg)
			if err := p.e[0].BufferSpace().Attach(1 << 20); err != nil {
				t.Fatal(err)
			}
			data, buf := make([]byte, c.n), make([]byte, c.n)
			message := func() {
				var r *Request
				if !c.late {
					r = p.recv(1, buf)
				}
				s := p.send(0, c.mode, data)
				if c.late {
					p.settle()
					r = p.recv(1, buf)
				}
				p.settle()
				if !r.Done() || !s.Done() || r.Err() != nil {
					t.Fatal("not done")
				}
				p.e[0].Release(s)
				p.e[1].Release(r)
			}
			for range 300 { // windows and pools reach their steady state
				message()
			}
			if n := testing.AllocsPerRun(200, message); n != 0 {
				t.Errorf("%v allocations for a message", n)
			}
		})
	}
}

func TestNoAllocationsForManyAtATime(t *testing.T) {
	p := newPair(t, Config{MaxData: 65536, AckMark: 8, HiWater: 16})
	data, buf := make([]byte, 8), make([]byte, 8)
	var sends, recvs [100]*Request
	round := func(late bool) {
		post := func() {
			for i := range recvs {
				recvs[i] = p.e[1].Recv(Envelope{Tag: wire.Tag(i)}, 0, buf)
			}
		}
		if !late {
			post()
		}
		for i := range sends {
			sends[i] = p.e[0].Send(1, Envelope{Tag: wire.Tag(len(sends) - 1 - i)}, Standard, data, 8, 0)
		}
		p.settle()
		if late {
			post()
			p.settle()
		}
		for i := range sends {
			if !sends[i].Done() || !recvs[i].Done() {
				t.Fatal("not done")
			}
			p.e[0].Release(sends[i])
			p.e[1].Release(recvs[i])
		}
	}
	both := func() { round(false); round(true) }
	for range 20 {
		both()
	}
	if n := testing.AllocsPerRun(50, both); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNoAllocationsInPlace(t *testing.T) {
	p := newPair(t, roomy)
	link := &room{mem: make([]byte, 1000)}
	p.e[0].InPlace(0, link)
	data, buf := make([]byte, 8), make([]byte, 8)
	message := func() {
		r := p.recv(1, buf)
		if _, ok := p.e[0].SendEager(1, Envelope{Tag: 7}, data, 8, 0); !ok || !p.e[0].HasOutput(0) || p.e[0].Output(0) != nil {
			t.Fatal("not in the link's memory")
		}
		if n, err := p.e[1].Arrived(0, link.mem[:link.used]); n != link.used || err != nil {
			t.Fatal(n, err)
		}
		link.used = 0
		if !r.Done() {
			t.Fatal("not done")
		}
		p.e[1].Release(r)
		p.move(1)
	}
	for range 300 {
		message()
	}
	if n := testing.AllocsPerRun(200, message); n != 0 {
		t.Errorf("%v allocations for a message", n)
	}
}

func TestNoAllocationsToSelf(t *testing.T) {
	e := newPair(t, roomy).e[0]
	data, buf := make([]byte, 8), make([]byte, 8)
	message := func() {
		s := e.Send(0, Envelope{}, Standard, data, 8, 0)
		r := e.Recv(Envelope{}, 0, buf)
		e.Release(s)
		e.Release(r)
	}
	for range 100 {
		message()
	}
	if n := testing.AllocsPerRun(100, message); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
