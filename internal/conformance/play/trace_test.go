package play

import (
	"strings"
	"testing"
)

func TestTraceKeepsBothEnds(t *testing.T) {
	tr := newTrace()
	for i := range traceHead + traceTail + 50 {
		tr.add("line %d.", i)
	}
	all := strings.Join(tr.lines(), "\n")
	for _, words := range []string{"line 0.", "line 79.", "50 lines left out", "line 130.", "line 289."} {
		if !strings.Contains(all, words) {
			t.Errorf("%q is not in the trace", words)
		}
	}
	if strings.Contains(all, "line 129.") {
		t.Error("line 129 was to be left out")
	}
}
