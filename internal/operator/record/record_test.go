package record

import (
	"testing"
	"time"
)

// TestSilences: a site that does not answer is waited for from the first question on, not again
// each time, and one that never asks no longer than it takes to be sure of that.
func TestSilences(t *testing.T) {
	const client = 1
	const last = 2 * time.Second
	s, now := silences{last, make(map[int]time.Time)}, time.Now()
	if s.gone(client, true, time.Hour, now) || s.asked(client, now) != last || s.gone(client, true, time.Hour, now.Add(last-1)) {
		t.Error("a site is given up before it has had time to answer")
	}
	if left := s.asked(client, now.Add(last/2)); left != last-last/2 {
		t.Errorf("a second question is given %v", left)
	}
	if left := s.asked(client, now.Add(2*last)); left != leastLook || !s.gone(client, true, 0, now.Add(last)) {
		t.Errorf("a silent site is given %v", left)
	}
	delete(s.since, client) // it has answered
	if s.gone(client, true, time.Hour, now.Add(time.Hour)) {
		t.Error("a site that has answered is gone")
	}
	if ran := firstLook + last; s.gone(client, false, ran-1, now) || !s.gone(client, false, ran, now) {
		t.Error("when is a site gone that has never asked?")
	}
}
