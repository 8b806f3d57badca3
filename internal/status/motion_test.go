package status

import (
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// TestMotion: since when nothing of what is under way has arrived.
func TestMotion(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	var m StallTracker
	for i, c := range []struct {
		at              int
		sent, left      uint64
		unknown         bool
		want            time.Duration
		channel, ofThat uint64 // sent and left
		channelStill    time.Duration
	}{
		{at: 0, sent: 100, left: 40, channel: 9, ofThat: 9},
		{at: 1, sent: 100, left: 40, want: time.Second, channel: 12, ofThat: 12, channelStill: time.Second},
		{at: 3, sent: 160, left: 100, want: 3 * time.Second, channel: 12, ofThat: 11}, // more was sent, and nothing has arrived
		{at: 4, sent: 160, left: 90},
		{at: 5, sent: 160, left: 90, want: time.Second},
		{at: 6, sent: 160},
		{at: 7, sent: 170, left: 10},
		{at: 8, sent: 170, unknown: true},
		{at: 9, sent: 170, left: 10},
	} {
		j := Job{Job: links.Job{Name: "heat", Pairs: []links.Pair{{A: 0, B: 1, BToA: links.Count{Bytes: &c.sent, UnderWay: &c.left}}}, Channels: []links.Channel{{From: 0, To: 1, Bytes: links.Bytes{Sent: &c.channel}, UnderWay: &c.ofThat}}}}
		if c.unknown {
			j.Pairs[0].BToA.UnderWay = nil
		}
		m.Update([]Job{j}, at(c.at))
		if got, ch := j.Pairs[0].BToA.NoArrivalFor, j.Channels[0].NoArrivalFor; got != c.want || ch != c.channelStill || j.Pairs[0].AToB.NoArrivalFor != 0 {
			t.Errorf("look %d: %v and %v of the channel, want %v and %v", i, got, ch, c.want, c.channelStill)
		}
	}
	five, sent := uint64(5), uint64(9)
	j := Job{Job: links.Job{Pairs: []links.Pair{{State: links.StateLinked, AToB: links.Count{Bytes: &sent, UnderWay: &five, NoArrivalFor: 12 * time.Second}, BToA: links.Count{Bytes: &sent, UnderWay: new(uint64)}}, {State: links.StateLinked}}}}
	if got := underWayInShort(&j); got != "5 B on 1 links and channels, on one of them none has arrived for 12.0 s, unknown of 1" {
		t.Error(got)
	}
	computing, asleep := &links.Proc{Wait: links.Waiting{State: "computing"}}, &links.Proc{Wait: links.Waiting{State: "asleep"}}
	if Stalls(time.Hour, computing) || !Stalls(time.Hour, asleep) || Stalls(time.Second, asleep) || !Stalls(time.Hour, nil) {
		t.Error("a link stalls if bytes stand still on it that a proc in MPI would take")
	}
}
