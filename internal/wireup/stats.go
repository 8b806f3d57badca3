package wireup

import "github.com/openimpi/impi/core/wire"

// MaxStats is the most links in one KindStats record.
const MaxStats = 256

// Stats is what a proc knows of its links at one moment.
type Stats struct {
	Budget  int64       `json:"budget_ns"` // of polling, for each wait
	Crowded bool        `json:"crowded,omitempty"`
	Score   int         `json:"score,omitempty"` // the score of crowding, see package poll
	State   string      `json:"state"`           // "polling", "asleep" or "computing"
	Agent   LinkStats   `json:"agent"`
	Links   []LinkStats `json:"links,omitempty"`
	More    bool        `json:"more,omitempty"` // another record follows, with more Links
}

// LinkStats is what a proc knows of a link, or of a peer to which packets go
// through the agent.
type LinkStats struct {
	Peer     wire.WorldRank `json:"peer"`
	Messages uint64         `json:"messages,omitempty"` // sent
	Counted  bool           `json:"counted,omitempty"`  // the bytes are known
	Sent     uint64         `json:"sent,omitempty"`     // bytes over a direct link
	Received uint64         `json:"received,omitempty"` // bytes over a direct link
	RTT      int64          `json:"rtt_ns,omitempty"`   // the kernel's estimate
	Direct   bool           `json:"direct,omitempty"`   // there is a direct link
	Routed   bool           `json:"routed,omitempty"`   // packets can reach the peer
}
