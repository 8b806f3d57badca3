package wireup

import "time"

// Resumable is what is said of a link to a peer that outlives its connections.
// With KindLink it makes the link one, or comes with a further connection for it
// (Again), or says that there is none (Again, no descriptors, Reason). With
// KindOpen it asks for a further connection; Reason says what became of the last.
type Resumable struct {
	Session []byte `json:"session"` // 16 bytes
	Again   bool   `json:"again,omitempty"`

	// With the first KindLink.
	Dialler bool          `json:"dialler,omitempty"` // the proc asks for further connections; else its peer does
	Window  int           `json:"window,omitempty"`  // bytes kept for replay
	Limit   time.Duration `json:"limit_ns,omitempty"`

	// Lost comes with KindLink, without descriptors, at the end that asks for
	// connections: its peer has lost the one of Epoch. The other end sets Epoch in a
	// KindOpen, which has the peer told.
	Lost  bool   `json:"lost,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`

	// Over tells that the peer has finished, so that nothing is missing; in a
	// KindOpen, that the proc has given the link up and takes no connections for it.
	Over bool `json:"over,omitempty"`
}
