package dynamic

import "testing"

func TestSpawned(t *testing.T) {
	moves := map[string]func(*Spawned) bool{
		"started": (*Spawned).Started, "not started": (*Spawned).NotStarted, "connect": (*Spawned).Connect,
		"disconnect": (*Spawned).Disconnect, "orphan": (*Spawned).Orphan,
	}
	const none = SpawnState(99)
	for from, want := range []map[string]SpawnState{
		SpawnStarting:     {"started": SpawnConnecting, "not started": SpawnOrphaned, "connect": none, "disconnect": none, "orphan": none},
		SpawnConnecting:   {"started": none, "not started": none, "connect": SpawnConnected, "disconnect": SpawnDisconnected, "orphan": SpawnOrphaned},
		SpawnConnected:    {"started": none, "not started": none, "connect": none, "disconnect": SpawnDisconnected, "orphan": none},
		SpawnDisconnected: {"started": none, "not started": none, "connect": none, "disconnect": none, "orphan": none},
		SpawnOrphaned:     {"started": none, "not started": none, "connect": none, "disconnect": none, "orphan": none},
	} {
		for name, move := range moves {
			s := Spawned{SpawnState(from)}
			to := want[name]
			if moved := move(&s); moved != (to != none) || moved && s.State() != to || !moved && s.State() != SpawnState(from) {
				t.Errorf("%s of state %d: %v, state %d, want %d", name, from, moved, s.State(), to)
			}
		}
	}
}

func TestSpawnedEnds(t *testing.T) {
	for from, want := range [][3]bool{ // too early, theirs, ends with parents
		SpawnStarting:     {false, false, true},
		SpawnConnecting:   {true, false, true},
		SpawnConnected:    {false, true, true},
		SpawnDisconnected: {false, false, false},
		SpawnOrphaned:     {true, false, true},
	} {
		s := Spawned{SpawnState(from)}
		with := s.EndsWithParents()
		tooEarly, theirs := s.Ended()
		if got := [3]bool{tooEarly, theirs, with}; got != want {
			t.Errorf("state %d: %v, want %v", from, got, want)
		}
	}
}
