package wireup

import "time"

// Resumable has the fields about a link that outlives its connections. With KindLink it
// makes the link resumable, or comes with another connection for it (Again), or says that
// there is none (Again, no descriptors, Reason). With KindOpen it asks for another
// connection; Reason says how the last one was lost.
type Resumable struct {
	Session []byte `json:"session"` // 16 bytes
	Again   bool   `json:"again,omitempty"`

	// The fields that come with the first KindLink.
	Dialler bool          `json:"dialler,omitempty"` // the proc asks for further connections; otherwise its peer does
	Window  int           `json:"window,omitempty"`  // bytes kept for replay
	Limit   time.Duration `json:"limit_ns,omitempty"`

	// Lost in a KindLink without descriptors, at the end that requests connections, reports that
	// its peer has lost the connection of Epoch. The other end sets Epoch in a KindOpen to have
	// that reported to the peer.
	Lost  bool   `json:"lost,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`

	// Over reports that the peer has finished, so that nothing is missing; in a KindOpen, that the
	// proc has given the link up and accepts no connections for it.
	Over bool `json:"over,omitempty"`
}
