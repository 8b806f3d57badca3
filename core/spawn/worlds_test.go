package spawn

import (
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
)

var (
	port  = dynamic.WorldID{1}
	start = time.Unix(100, 0)
)

const limit = 10 * time.Second

// steps by which a world of proc 0 gets to a state.
var steps = map[State]func(*Worlds[int], *SpawnedWorld[int]){
	Starting:   func(*Worlds[int], *SpawnedWorld[int]) {},
	Connecting: func(s *Worlds[int], w *SpawnedWorld[int]) { s.Started(start, w, limit, true) },
	Connected: func(s *Worlds[int], w *SpawnedWorld[int]) {
		s.Started(start, w, limit, true)
		s.PortClosed(port)
	},
	Disconnected: func(s *Worlds[int], w *SpawnedWorld[int]) {
		s.Started(start, w, limit, true)
		s.PortClosed(port)
		s.Disconnect(0, 7)
	},
	Orphaned: func(s *Worlds[int], w *SpawnedWorld[int]) {
		s.Started(start, w, limit, true)
		s.Cancel(0, 7)
	},
}

// in returns a world in a state, beside one of another proc that is Connecting.
func in(t *testing.T, state State) (*Worlds[int], *SpawnedWorld[int]) {
	t.Helper()
	s, w := &Worlds[int]{}, &SpawnedWorld[int]{Spawner: 0, Request: 7, Port: port}
	s.Started(start, &SpawnedWorld[int]{Spawner: 1, Request: 7, Port: dynamic.WorldID{2}}, 2*limit, true)
	steps[state](s, w)
	if w.State() != state {
		t.Fatalf("state %d, want %d", w.State(), state)
	}
	return s, w
}

func TestWorldStates(t *testing.T) {
	moves := map[string]func(*Worlds[int], *SpawnedWorld[int]){
		"port closed":         func(s *Worlds[int], _ *SpawnedWorld[int]) { s.PortClosed(port) },
		"another port closed": func(s *Worlds[int], _ *SpawnedWorld[int]) { s.PortClosed(dynamic.WorldID{9}) },
		"proc gone":           func(s *Worlds[int], _ *SpawnedWorld[int]) { s.ProcEnded(0); s.PortClosed(port) },
		"disconnect":          func(s *Worlds[int], _ *SpawnedWorld[int]) { s.Disconnect(0, 7) },
		"disconnect another":  func(s *Worlds[int], _ *SpawnedWorld[int]) { s.Disconnect(0, 8); s.Disconnect(1, 7) },
		"cancel":              func(s *Worlds[int], _ *SpawnedWorld[int]) { s.Cancel(0, 7) },
		"cancel another":      func(s *Worlds[int], _ *SpawnedWorld[int]) { s.Cancel(0, 8); s.Cancel(1, 7) },
		"not started":         func(s *Worlds[int], w *SpawnedWorld[int]) { s.NotStarted(w) },
	}
	changes := map[State]map[string]State{ // the others change nothing
		Starting:   {"not started": Orphaned},
		Connecting: {"port closed": Connected, "disconnect": Disconnected, "cancel": Orphaned, "not started": Orphaned},
		Connected:  {"disconnect": Disconnected, "not started": Orphaned},
	}
	for from := Starting; from <= Orphaned; from++ {
		for name, move := range moves {
			if name == "not started" && from != Starting {
				continue
			}
			s, w := in(t, from)
			move(s, w)
			want, ok := changes[from][name]
			if !ok {
				want = from
			}
			if w.State() != want {
				t.Errorf("%s in state %d: state %d, want %d", name, from, w.State(), want)
			}
		}
	}
}

// TestWorldOfAClosedPort: the end of another port of that name is no connection.
func TestWorldOfAClosedPort(t *testing.T) {
	var s Worlds[int]
	w := &SpawnedWorld[int]{Port: port}
	s.Started(start, w, limit, false)
	if s.PortClosed(port); w.State() != Connecting {
		t.Errorf("state %d", w.State())
	}
}

func TestWorldEnds(t *testing.T) {
	const failure = "it crashed"
	const early = "it ended before it had connected with its parents"
	for state, tt := range map[State]struct{ failed, stopped, ended End }{
		Connecting:   {End{failure, true, false, false}, End{failure, true, false, false}, End{early, true, false, false}},
		Connected:    {End{failure, false, true, false}, End{failure, false, true, false}, End{Reason: early}},
		Disconnected: {End{failure, false, false, true}, End{failure, false, true, false}, End{Reason: early}},
		Orphaned:     {End{failure, true, false, false}, End{failure, true, false, false}, End{early, true, false, false}},
	} {
		for _, e := range []struct {
			failure string
			stopped bool
			want    End
		}{{failure, false, tt.failed}, {failure, true, tt.stopped}, {"", false, tt.ended}, {"", true, tt.ended}} {
			s, w := in(t, state)
			if got := s.Ended(w, e.failure, e.stopped); got != e.want {
				t.Errorf("%q in state %d, stopped %v: %+v, want %+v", e.failure, state, e.stopped, got, e.want)
			}
			if s.Disconnect(0, 7); len(s.living) != 1 || s.Cancel(0, 7) != nil {
				t.Errorf("in state %d it is known still", state)
			}
		}
	}
}

// TestWorldsEndWithTheirParents: all that were started and have something to do with them.
func TestWorldsEndWithTheirParents(t *testing.T) {
	for state, want := range map[State]bool{Connecting: true, Connected: true, Disconnected: false, Orphaned: true} {
		s, w := in(t, state)
		end := s.ParentsFailed()
		if got := len(end) == 2; got != want || end[0].Spawner != 1 || got && end[1] != w {
			t.Errorf("in state %d: %d worlds", state, len(end))
		}
	}
}

// TestWorldsThatDoNotConnect end when their time is over, once.
func TestWorldsThatDoNotConnect(t *testing.T) {
	for state, want := range map[State]bool{Connecting: true, Connected: false, Disconnected: false, Orphaned: false} {
		s, w := in(t, state)
		at, ok := s.Deadline()
		if first := start.Add(limit); !ok || at.Equal(first) != want {
			t.Errorf("in state %d: until %v %v", state, at, ok)
		}
		if end := s.Tick(start.Add(limit - 1)); len(end) != 0 {
			t.Errorf("in state %d: too soon", state)
		}
		if end := s.Tick(start.Add(limit)); len(end) == 1 != want || want && end[0] != w {
			t.Errorf("in state %d: %d worlds", state, len(end))
		}
		if end := s.Tick(start.Add(limit)); len(end) != 0 {
			t.Errorf("in state %d: twice", state)
		}
		if end := s.Tick(start.Add(2 * limit)); len(end) != 1 {
			t.Errorf("the other world: %d", len(end))
		}
		if _, ok := s.Deadline(); ok {
			t.Errorf("in state %d: there is a deadline still", state)
		}
	}
}

// TestWorldsCancel gives the world that is to end.
func TestWorldsCancel(t *testing.T) {
	s, w := in(t, Connecting)
	if got := s.Cancel(0, 7); got != w {
		t.Errorf("%v", got)
	}
	if got := s.Cancel(0, 7); got != nil {
		t.Errorf("again: %v", got)
	}
	s, _ = in(t, Connected)
	if got := s.Cancel(0, 7); got != nil {
		t.Errorf("connected: %v", got)
	}
}
