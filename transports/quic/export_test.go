package quic

import "time"

// SetClock makes a transport judge certificates at another time.
func SetClock(t *Transport, now func() time.Time) {
	s := *t.settings.Load()
	s.id = s.id.At(now)
	t.settings.Store(&s)
}

// Moves is how often the transport has changed a path.
func Moves(t *Transport) int { return int(t.counts.moved.Load()) }

// NearNobody makes a transport take all peers for far ones.
func NearNobody(t *Transport) {
	s := *t.settings.Load()
	s.near = 0
	t.settings.Store(&s)
}
