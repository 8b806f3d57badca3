package kernel

import (
	"fmt"
	"strings"
)

const defaultTrace = 400

// trace keeps the last lines. They are formatted only when they are read, which is rare.
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

// KeepTrace sets the number of lines that are kept; 0 keeps none.
func (k *Kernel) KeepTrace(n int) { k.trace = trace{limit: n} }

// Tracing reports whether lines are kept. Code that calls Tracef often asks first, since even
// unused arguments cost time.
func (k *Kernel) Tracing() bool { return k.trace.limit > 0 }

// Tracef keeps a line for the trace. The arguments must not change afterwards.
func (k *Kernel) Tracef(format string, args ...any) {
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

// Trace returns the last lines, oldest first, each with its virtual time in microseconds.
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
