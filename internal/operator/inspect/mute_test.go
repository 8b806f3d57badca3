package inspect

import (
	"testing"
	"time"
)

// TestMute: a host is silent since the first question that it has not answered, until it answers
// one.
func TestMute(t *testing.T) {
	var m mute
	a, b := place{0, 1}, place{1, anyHost}
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for i, c := range []struct {
		of          place
		asked, want int64
	}{{a, 10, 10}, {a, 20, 10}, {b, 25, 25}, {a, 5, 5}, {a, 30, 5}} { // one that was asked earlier may be known later
		if got := m.since(c.of, at(c.asked)); !got.Equal(at(c.want)) {
			t.Errorf("%d: %v", i, got.Unix())
		}
	}
	m.answered(a)
	if got := m.since(a, at(40)); !got.Equal(at(40)) {
		t.Errorf("after an answer: %v", got.Unix())
	}
	if got := m.since(b, at(50)); !got.Equal(at(25)) {
		t.Errorf("the other: %v", got.Unix())
	}
}
