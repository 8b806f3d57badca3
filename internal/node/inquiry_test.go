package node

import (
	"testing"

	"github.com/openimpi/impi/internal/wireup"
)

func TestInquiryPutsPartsTogether(t *testing.T) {
	part := func(more bool, n int) *wireup.Stats {
		return &wireup.Stats{Links: make([]wireup.LinkStats, n), More: more}
	}
	q := inquiry{done: make(chan struct{})}
	done := q.done
	if !q.heard(part(true, 3), 5) {
		t.Fatal("the first part is refused")
	}
	select {
	case <-done:
		t.Fatal("the first part is taken for all")
	default:
	}
	if !q.heard(part(false, 2), 5) {
		t.Fatal("the second part is refused")
	}
	<-done
	if len(q.answer.Links) != 5 {
		t.Errorf("%d links", len(q.answer.Links))
	}
	if q.heard(part(false, 1), 5) {
		t.Error("nobody asked for this")
	}
}

// TestInquiryIsBounded: a proc cannot fill its node's memory.
func TestInquiryIsBounded(t *testing.T) {
	q := inquiry{done: make(chan struct{})}
	all := &wireup.Stats{Links: make([]wireup.LinkStats, 4), More: true}
	if !q.heard(all, 5) {
		t.Fatal("refused")
	}
	for range 3 {
		if q.heard(&wireup.Stats{Links: make([]wireup.LinkStats, 2), More: true}, 5) {
			t.Fatal("more links than procs")
		}
	}
	if q.heard(nil, 5) {
		t.Error("an answer without anything")
	}
}

func TestStopped(t *testing.T) {
	if s := stopped(1 << 30); s != "" {
		t.Errorf("of no process: %q", s)
	}
}
