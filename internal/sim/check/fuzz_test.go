package check

import (
	"bytes"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/watchdog"
)

// fuzzLinks are the links of the fuzzed job.
var fuzzLinks = [][2]Endpoint{
	{ProcEnd(0), AgentEnd(0)}, {AgentEnd(1), AgentEnd(0)}, {AgentEnd(1), ProcEnd(3)}, {ProcEnd(0), ProcEnd(2)},
	{AgentEnd(2), AgentEnd(0)}, {ClientEnd(0), ServerEnd()}, {ServerEnd(), ClientEnd(2)}, {ProcEnd(2), AgentEnd(1)},
}

// Operations of a fuzzed program; the link is in the bits above, the direction is
// the next byte's lowest bit, and the rest of that is the length in bytes or headers.
const (
	opSent = iota
	opSentMany
	opReceived
	opReceivedAll
	opRead
	opEnded
	opSawEnd
	opOther
	opCount
)

func op(kind, link int, fromA bool, n int) []byte {
	b := []byte{byte(kind + link*opCount), byte(n << 1)}
	if fromA {
		b[1]++
	}
	return b
}

// FuzzChecker feeds the checker with anything: it may find violations, must not panic, and must
// keep what it has found.
func FuzzChecker(f *testing.F) {
	short := msg(0, 3, 3).bytes()
	f.Add([]byte{})
	f.Add(bytes.Join([][]byte{
		op(opSent, 1, true, 4), {0, 0, 0, 1},
		op(opSentMany, 0, true, 1), short[:HeaderSize], op(opSent, 0, true, 3), short[HeaderSize:], op(opReceivedAll, 0, false, 0),
		op(opSentMany, 1, false, 1), short[:HeaderSize], op(opSent, 1, false, 3), short[HeaderSize:], op(opReceivedAll, 1, true, 0),
		op(opSentMany, 2, true, 1), short[:HeaderSize], op(opSent, 2, true, 3), short[HeaderSize:], op(opReceivedAll, 2, false, 0),
	}, nil))
	f.Add(bytes.Join([][]byte{
		op(opSent, 5, true, 12), cmd("AUTH", u32(3)...), op(opReceivedAll, 5, false, 0),
		op(opSent, 5, false, 8), u32(1, 0), op(opReceivedAll, 5, true, 0),
		op(opSent, 5, true, 20), make([]byte, 8), cmd("IMPI", u32(0)...),
		op(opSent, 6, false, 12), cmd("AUTH", u32(1)...), op(opSent, 6, false, 12), cmd("IMPI", u32(2)...),
		op(opSent, 6, false, 20), coll(0x2400, u32(4, 5)),
	}, nil))
	direct := append(sync(0, 2, 1, 4).bytes(), cancel(0, 2, 1).bytes()...)
	f.Add(bytes.Join([][]byte{
		op(opSentMany, 3, true, 2), direct[:2*HeaderSize], op(opRead, 3, false, 100), direct[:100],
		op(opEnded, 3, true, 0), op(opSawEnd, 3, false, 0), op(opOther, 3, true, 1), op(opOther, 3, true, 2), op(opOther, 3, true, 3),
	}, nil))
	f.Fuzz(func(t *testing.T, program []byte) {
		defer watchdog.Start()()
		c := newChecker(t, testJob())
		for i, ends := range fuzzLinks {
			if err := c.Link(i, ends[0], ends[1]); err != nil {
				t.Fatal(err)
			}
		}
		var first error
		for len(program) >= 2 {
			var err error
			if program, err = fuzzStep(c, program); first == nil {
				first = err
			} else if err != first {
				t.Fatalf("found %v first, and then %v", first, err)
			}
		}
		if err := c.Finish(true); first != nil && err != first {
			t.Fatalf("found %v first, and then %v", first, err)
		}
	})
}

// fuzzStep does one operation and returns the rest of the program.
func fuzzStep(c *Checker, program []byte) (rest []byte, err error) {
	kind, id := int(program[0])%opCount, int(program[0])/opCount%len(fuzzLinks)
	a, n := program[1]&1 == 1, int(program[1]>>1)
	rest = program[2:]
	now := time.Duration(len(program))
	take := func(n int) []byte {
		b := rest[:min(n, len(rest))]
		rest = rest[len(b):]
		return b
	}
	s := c.links[id].stream(!a)
	switch kind {
	case opSent:
		err = c.Sent(id, a, take(n), now)
	case opSentMany:
		err = c.Sent(id, a, take(n*HeaderSize), now)
	case opReceived:
		err = c.Received(id, a, n, now)
	case opReceivedAll:
		err = c.Received(id, a, int(s.sent-s.read), now)
	case opRead:
		err = c.Read(id, a, take(n), now)
	case opEnded:
		err = c.Ended(id, a)
	case opSawEnd:
		err = c.SawEnd(id, a)
	case opOther:
		err = fuzzOther(c, id, n)
	}
	return rest, err
}

func fuzzOther(c *Checker, id, n int) error {
	switch n % 8 {
	case 0:
		return c.Cut(id)
	case 1:
		return c.Crashed(fuzzLinks[id][0])
	case 2:
		return c.Finished(n / 8)
	case 3:
		return c.Memory(n/8, int64(n), int64(id), 1, 0)
	case 4:
		return c.Finish(false)
	}
	return c.Link(100+id, fuzzLinks[id][0], fuzzLinks[id][1])
}

// FuzzLine formats any bytes.
func FuzzLine(f *testing.F) {
	f.Add(msg(0, 3, 3).bytes())
	f.Add([]byte{0, 0, 0, 7})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		c := newChecker(t, testJob())
		if Line(b) == "" || c.Line(b) == "" {
			t.Error("nothing to say")
		}
	})
}
