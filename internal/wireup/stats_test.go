package wireup

import (
	"strings"
	"testing"
)

// TestWaitIsBounded: a proc cannot make its node keep more than it should say.
func TestWaitIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	w := &Wait{}
	for range 100 {
		w.Calls = append(w.Calls, Call{long, long})
		w.Partners = append(w.Partners, Partner{What: long, Comm: long, Why: long})
	}
	w.Truncate()
	if len(w.Calls) != maxCalls || len(w.Partners) != MaxPartners {
		t.Errorf("%d calls, %d partners", len(w.Calls), len(w.Partners))
	}
	c, p := w.Calls[maxCalls-1], w.Partners[MaxPartners-1]
	for _, s := range []string{c.Name, c.At, p.What, p.Comm, p.Why} {
		if len(s) != maxCallName {
			t.Errorf("a text of %d bytes", len(s))
		}
	}
	(*Wait)(nil).Truncate()
}
