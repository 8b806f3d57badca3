package dynamic

// SpawnState is what a spawned world has to do with the world of its parents (MPI-4.1,
// 11.8.4 and 11.10.4: connected processes end together).
type SpawnState uint8

// The states, in the order in which a world passes them.
const (
	SpawnStarting     SpawnState = iota // not all of its procs are in Init
	SpawnConnecting                     // its procs are in Init and call the parents' port
	SpawnConnected                      // the proc that spawned it has a communicator with it
	SpawnDisconnected                   // that has none any more: neither's end concerns the other
	SpawnOrphaned                       // they could not connect
)

// Spawned is the state of one spawned world, at the node of the proc that spawned it. The
// zero value is that of a world that is being started.
type Spawned struct{ state SpawnState }

// State is how far the world is.
func (s *Spawned) State() SpawnState { return s.state }

// Started says that all procs are in Init.
func (s *Spawned) Started() bool { return s.move(SpawnConnecting, SpawnStarting) }

// NotStarted says that the world could not be started.
func (s *Spawned) NotStarted() bool { return s.move(SpawnOrphaned, SpawnStarting) }

// Connect says that the parents have let the procs in and closed their port.
func (s *Spawned) Connect() bool { return s.move(SpawnConnected, SpawnConnecting) }

// Disconnect says that the proc that spawned the world has no communicator with it.
func (s *Spawned) Disconnect() bool {
	return s.move(SpawnDisconnected, SpawnConnecting, SpawnConnected)
}

// Orphan says that parents and procs do not connect. True: end the world. False: they
// have connected, or the world is ended already.
func (s *Spawned) Orphan() bool { return s.move(SpawnOrphaned, SpawnConnecting) }

// Ended says that the world has ended. tooEarly: the parents could not connect with it.
// theirs: its failure is one of the parents' job, too.
func (s *Spawned) Ended() (tooEarly, theirs bool) {
	s.Orphan()
	return s.state == SpawnOrphaned, s.state == SpawnConnected
}

// EndsWithParents says whether the world is to end when the parents' job fails.
func (s *Spawned) EndsWithParents() bool { return s.state != SpawnDisconnected }

func (s *Spawned) move(to SpawnState, from ...SpawnState) bool {
	for _, x := range from {
		if s.state == x {
			s.state = to
			return true
		}
	}
	return false
}
