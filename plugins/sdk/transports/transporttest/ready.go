package transporttest

import (
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var readyCases = []Case{
	{"T-READY-01", "readable", "Arm or poll(2) tells when bytes have come, and not as long as none have", readable},
	{"T-READY-02", "writable", "Arm or poll(2) tells when there is room again, and not as long as there is none", writable},
	{"T-READY-03", "readable-at-the-end", "the end of the stream, and the peer's Close, make a link readable", readableAtTheEnd},
	{"T-READY-04", "same-handle", "a link keeps its handle until Close", sameHandle},
}

// armed reports whether one of want holds, within some milliseconds, as a sleeper
// would find out.
func armed(l link.Link, want link.Interest, milliseconds int) bool {
	if l.Arm(want) {
		return true
	}
	return l.Handle() != link.NoHandle && ready(l, want, milliseconds)
}

func (e *env) becomes(l link.Link, want link.Interest, when string) {
	e.Helper()
	for deadline := time.Now().Add(e.h.Patience); !armed(l, want, slice); {
		if time.Now().After(deadline) {
			e.Fatalf("%s: neither Arm nor poll(2) says so", when)
		}
	}
}

// quiet expects that a link on which nothing happens stops calling its reader;
// a few calls for nothing are allowed.
func (e *env) quiet(l link.Link, when string) {
	e.Helper()
	for range 20 {
		if n, err := l.Recv([][]byte{make([]byte, 1)}); n != 0 || err != nil {
			e.Fatalf("%s: Recv gives %d, %v", when, n, err)
		}
		if !armed(l, link.Readable, 0) {
			return
		}
	}
	e.Fatalf("%s: the link goes on calling its reader although nothing comes", when)
}

func readable(e *env) {
	a, b := e.pair()
	for _, text := range []string{"x", "a longer text", "x"} {
		e.quiet(b, "no bytes")
		e.must(e.send(a, []byte(text)))
		e.becomes(b, link.Readable, "bytes have come")
		got := make([]byte, len(text))
		for i := range got { // one by one: the handle stays readable
			e.becomes(b, link.Readable, "bytes are left")
			e.must(e.recv(b, got[i:i+1]))
		}
	}
	e.quiet(b, "all bytes were taken")
}

func writable(e *env) {
	a, b := e.pair()
	e.becomes(a, link.Writable, "a fresh link has room")
	taken := e.fill(a, &pattern{seed: 1}, new(looks))
	taken += e.full(a)
	e.must(e.recv(b, make([]byte, taken)))
	e.becomes(a, link.Writable, "all was received")
	e.must(e.greet(a, b, "go on"))
}

// full expects that a link which stays full stops calling its writer, and returns how many bytes it
// took after all. A few calls for nothing are allowed: the call for room that was used since may
// come late.
func (e *env) full(l link.Link) (taken int64) {
	e.Helper()
	for range 20 {
		if !armed(l, link.Writable, 0) {
			return taken
		}
		n, err := l.Send([][]byte{{0}})
		e.must(err)
		taken += int64(n)
	}
	if taken == 0 {
		e.Fatalf("a full link goes on saying that it has room, and Send takes nothing")
	}
	return taken
}

func readableAtTheEnd(e *env) {
	a, b := e.pair()
	e.must(a.CloseSend())
	e.becomes(b, link.Readable, "the stream has ended")
	e.must(e.eof(b))

	c, d := e.pair()
	e.must(c.Close())
	e.becomes(d, link.Readable, "the peer has closed")
	if err := e.end(d); !gone(err) {
		e.Fatalf("the peer has closed: Recv gives %v", err)
	}
}

func sameHandle(e *env) {
	a, b := e.pair()
	ha, hb := a.Handle(), b.Handle()
	if ha == link.NoHandle && hb == link.NoHandle {
		e.Skipf("the links have no handle")
	}
	if ha == hb {
		e.Fatalf("both ends have the handle %d", ha)
	}
	e.must(e.greet(a, b, "there"))
	e.must(e.greet(b, a, "and back"))
	if a.Handle() != ha || b.Handle() != hb {
		e.Fatalf("the handles %d and %d have become %d and %d", ha, hb, a.Handle(), b.Handle())
	}
}
