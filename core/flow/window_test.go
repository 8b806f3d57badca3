package flow

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLimitsCheck(t *testing.T) {
	for _, c := range []struct {
		l  Limits
		ok bool
	}{
		{Limits{1, 1}, true},
		{Limits{10, 20}, true},
		{Limits{math.MaxUint32, math.MaxUint32}, true},
		{Limits{0, 20}, false},
		{Limits{21, 20}, false},
		{Limits{}, false},
	} {
		err := c.l.Check()
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLimits) {
			t.Errorf("%+v: %v", c.l, err)
		}
	}
}

func TestWindowClosesAtHiwater(t *testing.T) {
	w := New(Limits{AckMark: 2, HiWater: 3})
	for i := range 3 {
		if !w.Open() {
			t.Fatalf("closed after %d packets", i)
		}
		w.Sent()
	}
	if w.Open() {
		t.Fatal("open with hiwater packets on their way")
	}
	w.Acked()
	if !w.Open() || w.Unacknowledged() != 1 {
		t.Fatalf("after PROTOACK: %d unacknowledged", w.Unacknowledged())
	}
}

func TestReceivedOwesOnePerAckmark(t *testing.T) {
	w := New(Limits{AckMark: 3, HiWater: 3})
	for i := 1; i <= 10; i++ {
		if ack := w.Received(); ack != (i%3 == 0) {
			t.Errorf("packet %d: ack %v", i, ack)
		}
	}
	if w.ReceivedSinceAck() != 1 {
		t.Errorf("received without PROTOACK: %d", w.ReceivedSinceAck())
	}
}

// A peer may acknowledge more packets than were sent. That allows more packets, and
// overflows nothing.
func TestTooManyAcks(t *testing.T) {
	w := New(Limits{AckMark: math.MaxUint32, HiWater: math.MaxUint32})
	w.Acked()
	if w.Unacknowledged() != -math.MaxUint32 || !w.Open() {
		t.Fatalf("unacknowledged %d", w.Unacknowledged())
	}
	w.sent = math.MinInt64/2 - 1
	w.Acked()
	if !w.Open() {
		t.Fatal("the counter has wrapped")
	}
}

func TestZeroWindowIsClosed(t *testing.T) {
	if w := (Window{}); w.Open() {
		t.Fatal("open")
	}
}

// Two windows with each other: never more than hiwater packets are under way, whatever is
// late, and the sender can always continue in the end.
func TestWindowsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Uint32Range(1, 10).Draw(t, "ackmark")
		l := Limits{AckMark: a, HiWater: rapid.Uint32Range(a, 20).Draw(t, "hiwater")}
		src, dst := New(l), New(l)
		packets, acks, sent := 0, 0, 0
		for range 300 {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				if src.Open() {
					src.Sent()
					packets++
					sent++
				}
			case 1:
				if packets > 0 {
					packets--
					if dst.Received() {
						acks++
					}
				}
			case 2:
				if acks > 0 {
					acks--
					src.Acked()
				}
			}
			if packets > int(l.HiWater) {
				t.Fatalf("%d packets under way", packets)
			}
			if packets == 0 && acks == 0 && !src.Open() {
				t.Fatalf("stuck after %d packets", sent)
			}
		}
	})
}
