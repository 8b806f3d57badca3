package ending

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

var (
	serverGone = fmt.Errorf("startup: client 0: the server's %w", startup.ErrLost)
	siteGone   = fmt.Errorf("startup: client 0: the server %w: client 1 (127.0.0.3:5): connection was lost before FINI (the last it sent was DONE): reset", startup.ErrFailed)
	otherWord  = fmt.Errorf("the server %w: why", startup.ErrFailed)
)

// TestServerTie: a job goes on without its server if the loss is not that of a site.
func TestServerTie(t *testing.T) {
	for _, c := range []struct {
		tie  ServerTie
		err  error
		want bool
	}{
		{ServerTie{}, serverGone, true},
		{ServerTie{NoChannels: true}, serverGone, false},
		{ServerTie{InJob: true}, serverGone, false},
		{ServerTie{InJob: true, Survives: true}, serverGone, true},
		{ServerTie{Dialect: wire.Draft}, serverGone, false},
		{ServerTie{}, otherWord, false},
		{ServerTie{}, startup.ErrProtocol, false},
		{ServerTie{FailuresReported: true}, otherWord, false},
		{ServerTie{FailuresReported: true}, siteGone, true},
		{ServerTie{}, siteGone, false},
		{ServerTie{FailuresReported: true, NoChannels: true}, siteGone, false},
		{ServerTie{FailuresReported: true, InJob: true}, siteGone, false},
		{ServerTie{FailuresReported: true, Dialect: wire.Draft}, siteGone, false},
	} {
		if got := c.tie.Outlives(c.err); got != c.want {
			t.Errorf("%+v, %v: %v", c.tie, c.err, got)
		}
	}
	if OutlivesOwnServer(false, serverGone) || OutlivesOwnServer(true, otherWord) || !OutlivesOwnServer(true, serverGone) {
		t.Error("the end of an embedded server is taken for something else")
	}
}

// TestServerWatch: a site goes on without the server only if its job runs, for which it waits.
func TestServerWatch(t *testing.T) {
	start := time.Unix(1000, 0)
	for what, c := range map[string]struct {
		events func(w *ServerWatch)
		want   []ServerStep
	}{
		"lost while it runs": {func(w *ServerWatch) {
			w.Runs(start)
			w.Lost(start, serverGone, false)
		}, []ServerStep{{true, serverGone, false}}},
		"lost before it runs": {func(w *ServerWatch) {
			w.Lost(start, serverGone, false)
			w.Tick(start.Add(RunTime - 1))
			w.Runs(start.Add(RunTime - 1))
		}, []ServerStep{{true, serverGone, false}}},
		"lost, and it does not run": {func(w *ServerWatch) {
			w.Lost(start, serverGone, false)
			w.Tick(start.Add(RunTime))
		}, []ServerStep{{false, serverGone, false}}},
		"lost a moment ago": {func(w *ServerWatch) {
			w.Lost(start, serverGone, false)
			w.Tick(start.Add(RunTime - 1))
		}, nil},
		"a site that it has lost, then itself": {func(w *ServerWatch) {
			w.Lost(start, siteGone, true)
			w.Lost(start.Add(1), serverGone, false)
			w.Tick(start.Add(RunTime))
			w.Runs(start.Add(RunTime))
		}, []ServerStep{{false, siteGone, true}, {true, serverGone, false}}},
		"what ends the job anyway": {func(w *ServerWatch) { w.Lost(start, otherWord, false) }, []ServerStep{{false, otherWord, false}}},
	} {
		w := &ServerWatch{Tie: ServerTie{FailuresReported: true}}
		c.events(w)
		var got []ServerStep
		for x, ok := w.Next(); ok; x, ok = w.Next() {
			got = append(got, x)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", what, got)
		}
		if at, waits := w.Deadline(); waits != (c.want == nil) || waits && !at.Equal(start.Add(RunTime)) {
			t.Errorf("%s: it waits until %v (%v)", what, at, waits)
		}
	}
	if w := new(ServerWatch); w.Lost(start, otherWord, false) || !w.Lost(start, serverGone, false) {
		t.Error("Lost says the contrary of what it decides")
	}
}
