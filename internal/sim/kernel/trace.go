package kernel

import (
	"fmt"
	"strings"
)

// defaultTrace is how many notes are kept.
const defaultTrace = 400

// trace keeps the last notes. They are formatted when somebody reads them, which
// hardly ever happens.
type trace struct {
	limit int
	lines []note
	first int
}

type note struct {
	at     int64 // nanoseconds
	format string
	args   []any
}

// Keep sets how many notes are kept; 0 keeps none.
func (k *Kernel) Keep(n int) { k.trace = trace{limit: n} }

// Noting tells whether notes are kept. Who has much to say asks first: even the
// arguments of a Note that is not kept cost something.
func (k *Kernel) Noting() bool { return k.trace.limit > 0 }

// Note keeps a line for the trace. The arguments must not change afterwards.
func (k *Kernel) Note(format string, args ...any) {
	t := &k.trace
	n := note{int64(k.now), format, args}
	switch {
	case t.limit <= 0:
	case len(t.lines) < t.limit:
		t.lines = append(t.lines, n)
	default:
		t.lines[t.first] = n
		t.first = (t.first + 1) % t.limit
	}
}

// Trace gives the last notes, one per line, oldest first, each with its virtual
// time in microseconds.
func (k *Kernel) Trace() string {
	var b strings.Builder
	t := &k.trace
	for i := range t.lines {
		n := t.lines[(t.first+i)%len(t.lines)]
		fmt.Fprintf(&b, "%12.3f  ", float64(n.at)/1000)
		fmt.Fprintf(&b, n.format, n.args...)
		b.WriteByte('\n')
	}
	return b.String()
}
