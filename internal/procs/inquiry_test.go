package procs

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch"
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

// TestAProcIsAskedOnce: who asks while an answer is awaited waits for the same one.
func TestAProcIsAskedOnce(t *testing.T) {
	launcher := launch.New()
	defer launcher.Close()
	x, err := launcher.Start(launch.Spec{Path: "/bin/sleep", Args: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Signal(syscall.SIGKILL); <-x.Done() }()
	control, theirs, err := wireup.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	defer control.Close()
	p := &Proc{os: x, control: control}
	p.state.Store(int32(ending.InMPI))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if since := p.SilentSince(); !since.IsZero() {
		t.Errorf("it is silent since %v, before it was asked", since)
	}
	var waited chan struct{}
	var silent time.Time
	for range 3 {
		if _, err := p.Stats(over, true); !errors.Is(err, errSilent) {
			t.Fatalf("an answer of nobody: %v", err)
		}
		p.inquiry.mu.Lock()
		asked := p.inquiry.done
		p.inquiry.mu.Unlock()
		if waited != nil && asked != waited {
			t.Error("it was asked again")
		}
		since := p.SilentSince()
		if since.IsZero() || waited != nil && since != silent {
			t.Errorf("it is silent since %v, then since %v", silent, since)
		}
		waited, silent = asked, since
	}
	if p.inquiry.heard(&wireup.Stats{}, 1); !p.SilentSince().IsZero() {
		t.Error("it is silent, though it has answered")
	}
}
