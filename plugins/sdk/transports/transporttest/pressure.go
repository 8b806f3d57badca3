package transporttest

import (
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var pressureCases = []Case{
	{"T-PRESS-01", "back-pressure", "a link that nobody reads takes a bounded number of bytes, and goes on when it is read", backPressure},
	{"T-PRESS-02", "stopped-reader", "a reader that stops stops neither the other direction of its link nor other links", stoppedReader},
}

// most is how much a link may take that nobody reads: many times what sockets and rings hold.
const most = 64 << 20

func backPressure(e *env) {
	a, b := e.pair()
	out := pattern{seed: 7}
	taken := e.fill(a, &out, new(Pauses))
	e.Logf("the link takes %d bytes", taken)

	in := pattern{seed: 7}
	buf := make([]byte, 64<<10)
	for left := taken; left > 0; {
		part := buf[:min(left, int64(len(buf)))]
		e.must(e.recv(b, part))
		e.must(in.check(part))
		left -= int64(len(part))
	}
	e.must(e.greet(a, b, "and on it goes"))
}

// Pauses finds out when a link that takes bytes now and then will take no more. Its zero value is
// ready for use.
type Pauses struct {
	since   time.Time     // when bytes were taken last
	longest time.Duration // longest pause after which more bytes were taken
}

// A link is full when it has taken nothing for this time, and for this multiple of its longest
// pause so far. A link that buffers bytes which its peer does not read takes them in bursts.
const (
	shortestPause = 1500 * time.Millisecond
	longerPause   = 5
)

// Moved records that bytes were taken.
func (p *Pauses) Moved() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
	p.longest = max(p.longest, time.Since(p.since))
	p.since = time.Now()
}

// Over reports whether no more will be taken.
func (p *Pauses) Over() bool {
	if p.since.IsZero() {
		p.since = time.Now()
	}
	return time.Since(p.since) > max(shortestPause, longerPause*p.longest)
}

// fullness decides when a link is full. It is told when the link has taken something.
type fullness interface {
	Moved()
	Over() bool
}

// looks takes a link for full after some calls in a row that move nothing, which is enough for most
// cases.
type looks int

func (n *looks) Moved()     { *n = 0 }
func (n *looks) Over() bool { *n++; return *n > 4 }

// fill sends a pattern until the link stays full, and says how much it took.
func (e *env) fill(l link.Link, p *pattern, full fullness) (taken int64) {
	e.Helper()
	buf := make([]byte, 64<<10)
	p.next(buf)
	rest := buf
	for !full.Over() {
		n, err := l.Send([][]byte{rest})
		e.must(err)
		taken += int64(n)
		if taken > most {
			e.Fatalf("a link that nobody reads took %d bytes: read no more from the connection than the link takes", taken)
		}
		if rest = rest[n:]; len(rest) == 0 {
			p.next(buf)
			rest = buf
		}
		if n > 0 {
			full.Moved()
		} else if !l.Arm(link.Writable) {
			ready(l, link.Writable, slice)
		}
	}
	return taken
}

func stoppedReader(e *env) {
	ln := e.listen()
	a, b := e.pairAt(ln)
	out, in := pattern{seed: 9}, pattern{seed: 9}
	taken := e.fill(a, &out, new(looks))
	c, d := e.pairAt(ln)
	cuts := cut{nil, 1, 10000}
	for _, ends := range [][2]link.Link{{b, a}, {c, d}, {d, c}} {
		e.together(both(e.stream(ends[0], ends[1], 1<<20, cuts, cuts))...)
	}
	got := make([]byte, taken)
	e.must(e.recv(b, got))
	e.must(in.check(got))
}
