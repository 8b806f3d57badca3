package procs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/wireup"
)

// inquiry asks a proc about its links. While an answer is awaited the proc is not asked again: all
// wait for the same answer.
type inquiry struct {
	mu     sync.Mutex
	done   chan struct{} // closed when the answer is complete; nil: no inquiry
	asked  time.Time     // when the inquiry began
	parts  *wireup.Stats // the parts of the answer that have come
	answer *wireup.Stats // the last complete answer
}

var errSilent = errors.New("it does not answer")

// Stats requests the statistics of a proc that is in MPI, until ctx ends; with calls also in which
// calls of MPI it waits, unless an inquiry is already under way.
func (p *Proc) Stats(ctx context.Context, calls bool) (*wireup.Stats, error) {
	switch p.State() {
	case ending.InMPI:
	case ending.Finished:
		return nil, errors.New("it has passed MPI Finalize")
	default:
		return nil, errors.New("it is not in MPI yet")
	}
	q := &p.inquiry
	q.mu.Lock()
	if q.done == nil {
		q.done, q.asked = make(chan struct{}), time.Now()
		go func() { _ = p.Send(wireup.Message{Kind: wireup.KindStats, Calls: calls}) }() // blocks if the proc does not read
	}
	done := q.done
	q.mu.Unlock()
	select {
	case <-done:
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.answer, nil
	case <-p.os.Exited():
		return nil, errors.New("it has ended")
	case <-ctx.Done():
		return nil, fmt.Errorf("%w%s", errSilent, stopped(p.os.PID()))
	}
}

// SilentSince returns when the proc was asked what it has not answered; zero: it has answered all.
func (p *Proc) SilentSince() time.Time {
	q := &p.inquiry
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done == nil {
		return time.Time{}
	}
	return q.asked
}

// heard takes a message of an answer. It returns false if it was not asked for, or is too long.
func (q *inquiry) heard(s *wireup.Stats, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done == nil || s == nil {
		return false
	}
	if q.parts != nil {
		s.Links = append(q.parts.Links, s.Links...)
		s.Retransmits = q.parts.Retransmits
	}
	if len(s.Links) > most {
		return false
	}
	s.Wait.Truncate()
	if q.parts = s; s.More {
		return true
	}
	q.answer, q.parts = s, nil
	close(q.done)
	q.done = nil
	return true
}

// stopped returns an addition to an error text if a signal or a debugger has stopped the process,
// otherwise "".
func stopped(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, state, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	if len(state) > 0 && (state[0] == 'T' || state[0] == 't') {
		return ": the process is stopped (SIGSTOP, or a debugger)"
	}
	return ""
}
