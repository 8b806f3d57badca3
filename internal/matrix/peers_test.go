package matrix

import (
	"errors"
	"strings"
	"testing"
)

// TestEveryPeerCellRunsOrSaysWhyNot: without LAM only LAM's cells are missing, and they say
// so.
func TestEveryPeerCellRunsOrSaysWhyNot(t *testing.T) {
	missing := errors.New("not built")
	run, without := 0, 0
	for _, c := range SelectPeers() {
		if peerTests[c.Program] == "" {
			t.Errorf("%s has no tests", c)
		}
		if c.unsupported(nil) == "" {
			run++
		}
		if c.unsupported(missing) == "" {
			without++
			if c.Peer != Ours {
				t.Errorf("%s runs without LAM", c)
			}
		}
	}
	if n := len(PeerPrograms) - 1; run != 3*n+4 || without != n {
		t.Errorf("%d cells run, %d without LAM", run, without)
	}
}

func TestPeerTable(t *testing.T) {
	var b strings.Builder
	PeerTable(&b, []PeerResult{
		{PeerCell: PeerCell{LAMLast, "ring", NoFault}, Verdict: OK},
		{PeerCell: PeerCell{LAMLast, "flood", NoFault}, Verdict: Failed, Reason: "it\nbroke"},
	})
	for _, want := range []string{
		"| LAM/MPI as client 1 | none | ok | not run | **failed** (1) | not run |",
		"1. LAM/MPI as client 1/flood/none: it broke\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
