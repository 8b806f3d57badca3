package transporttest

import "github.com/openimpi/impi/core/link"

var pressureCases = []Case{
	{"T-PRESS-01", "back-pressure", "a link that nobody reads takes a bounded number of bytes, and goes on when it is read", backPressure},
	{"T-PRESS-02", "stopped-reader", "a reader that stops stops neither the other direction of its link nor other links", stoppedReader},
}

// most is how much a link may take that nobody reads.
const most = 256 << 20

func backPressure(e *env) {
	a, b := e.pair()
	out := pattern{seed: 7}
	taken := e.fill(a, &out)
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

// fill sends a pattern until the link stays full, and says how much it took.
func (e *env) fill(l link.Link, p *pattern) (taken int64) {
	e.Helper()
	buf := make([]byte, 64<<10)
	p.next(buf)
	rest := buf
	for full := 0; full < 4; {
		n, err := l.Send([][]byte{rest})
		e.must(err)
		taken += int64(n)
		if taken > most {
			e.Fatalf("a link that nobody reads took %d bytes", taken)
		}
		if rest = rest[n:]; len(rest) == 0 {
			p.next(buf)
			rest = buf
		}
		if full++; n > 0 {
			full = 0
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
	taken := e.fill(a, &out)
	c, d := e.pairAt(ln)
	cuts := cut{nil, 1, 10000}
	for _, ends := range [][2]link.Link{{b, a}, {c, d}, {d, c}} {
		e.together(both(e.stream(ends[0], ends[1], 1<<20, cuts, cuts))...)
	}
	got := make([]byte, taken)
	e.must(e.recv(b, got))
	e.must(in.check(got))
}
