package wireup

import (
	"strings"

	"github.com/openimpi/impi/core/wire"
)

// MaxStats is the maximum number of links in one KindStats record.
const MaxStats = 256

// Stats is what a proc knows of its links at one moment.
type Stats struct {
	Budget         int64       `json:"budget_ns"` // time of polling, for each wait
	Oversubscribed bool        `json:"crowded,omitempty"`
	Score          int         `json:"score,omitempty"` // the score of crowding, see package poll
	State          string      `json:"state"`           // "polling", "asleep" or "computing"
	Agent          LinkStats   `json:"agent"`
	Links          []LinkStats `json:"links,omitempty"`
	Counts         Counts      `json:"counts"`
	Wait           *Wait       `json:"wait,omitempty"`    // what the proc waits for, if it is asleep in a call of MPI
	Account        *Account    `json:"account,omitempty"` // if the job counts; in the first record
	More           bool        `json:"more,omitempty"`    // another record follows, with more Links

	// Retransmits are the numbers of segments that TCP has sent again on links, by their
	// transports, since MPI_Init; in the first record.
	Retransmits map[string]uint64 `json:"retransmits,omitempty"`
}

// Counts are what a proc has counted since its MPI_Init.
type Counts struct {
	Unexpected      int    `json:"unexpected,omitempty"`       // messages for which no receive was started yet, now
	UnexpectedBytes int64  `json:"unexpected_bytes,omitempty"` // bytes of these messages that are here
	Sleeps          uint64 `json:"sleeps,omitempty"`           // in calls of MPI
	Slept           int64  `json:"slept_ns,omitempty"`         // total time
	Clock           int64  `json:"clock_ns,omitempty"`         // since the proc began, when it counted; older procs do not send it
	EndedSent       uint64 `json:"ended_sent,omitempty"`       // bytes on direct links that have ended
	EndedReceived   uint64 `json:"ended_received,omitempty"`
}

// Limits of a Wait.
const (
	maxCalls    = 16
	maxCallName = 256
	MaxPartners = 16
	MaxWaiters  = 1024 // procs that wait for the locks of one proc's windows
	maxHolders  = 16
)

// Wait describes what a proc waits for.
type Wait struct {
	Time  int64  `json:"time_ns"`         // time it has waited
	Calls []Call `json:"calls,omitempty"` // calls of its goroutines or threads that wait

	// Partners are messages that the proc waits to receive or to send, and procs that have not come
	// to a collective operation, MaxPartners at most.
	Partners []Partner `json:"partners,omitempty"`
	Left     int       `json:"left,omitempty"` // number of further partners

	// Locks are the locks of this proc's own windows for which others wait, MaxWaiters of the
	// waiting procs at most.
	Locks []Lock `json:"locks,omitempty"`

	// Computes is set if threads of the proc used a core while it was blocked. It is only
	// determined for waits that are already long.
	Computes bool `json:"computes,omitempty"`
}

// Call is a call of MPI in which a goroutine or a thread waits.
type Call struct {
	Name string `json:"name"`
	At   string `json:"at,omitempty"` // file and line of a Go program
}

// What a proc waits for at another member of a window, as Partner.What.
const (
	WantsPost     = "post"      // its MPI_Win_post
	WantsComplete = "complete"  // its MPI_Win_complete
	WantsLock     = "lock"      // the lock of its memory, which was requested
	WantsWindow   = "one-sided" // serving operations, as it does in any call of MPI
)

// Lock is the lock of a proc's memory in a window (MPI-4.1, 12.5.3).
type Lock struct {
	Window  string           `json:"window"`
	Holders []wire.WorldRank `json:"holders"` // at least one of them must release the lock
	Waiters []wire.WorldRank `json:"waiters"` // procs whose requests have come
}

// Partner is another proc, and what is expected of it.
type Partner struct {
	What       string         `json:"what"`            // "recv", "send", "collective", or one of the Wants constants
	Any        bool           `json:"any,omitempty"`   // recv: from any source; Peer has no meaning
	OtherWorld bool           `json:"away,omitempty"`  // the proc is of another world; Peer has no meaning without World
	World      string         `json:"world,omitempty"` // the name of that world, in which Peer is its rank
	Peer       wire.WorldRank `json:"peer"`
	Tag        int            `json:"tag"`            // recv and send; AnyTag: any
	Comm       string         `json:"comm,omitempty"` // communicator or window
	Why        string         `json:"why,omitempty"`  // what a send or a receive that has begun waits for
}

// Truncate cuts texts and lists that are longer than those that a proc of this release sends.
func (w *Wait) Truncate() {
	if w == nil {
		return
	}
	w.Calls, w.Partners = w.Calls[:min(len(w.Calls), maxCalls)], w.Partners[:min(len(w.Partners), MaxPartners)]
	for i := range w.Calls {
		short(&w.Calls[i].Name)
		short(&w.Calls[i].At)
	}
	for i := range w.Partners {
		p := &w.Partners[i]
		short(&p.What)
		short(&p.World)
		short(&p.Comm)
		short(&p.Why)
	}
	left := MaxWaiters
	for i := range w.Locks {
		l := &w.Locks[i]
		short(&l.Window)
		l.Holders, l.Waiters = l.Holders[:min(len(l.Holders), maxHolders)], l.Waiters[:min(len(l.Waiters), left)]
		if left -= len(l.Waiters); left == 0 {
			w.Locks = w.Locks[:i+1]
			break
		}
	}
}

func short(s *string) { *s = strings.ToValidUTF8((*s)[:min(len(*s), maxCallName)], "") }

// LinkStats is what a proc knows of a link, or of a peer to which packets go
// through the agent.
type LinkStats struct {
	Peer            wire.WorldRank   `json:"peer"`
	Messages        uint64           `json:"messages,omitempty"` // messages sent
	Data            uint64           `json:"data,omitempty"`     // bytes of data in them, whatever way they went
	Counted         bool             `json:"counted,omitempty"`  // the bytes are known
	Sent            uint64           `json:"sent,omitempty"`     // bytes over a direct link
	Received        uint64           `json:"received,omitempty"` // bytes over a direct link
	RTT             int64            `json:"rtt_ns,omitempty"`   // the kernel's estimate
	Direct          bool             `json:"direct,omitempty"`   // there is a direct link
	Pure            bool             `json:"pure,omitempty"`     // the bytes are those of the two procs alone, without what nodes sent on the link before
	Disconnected    bool             `json:"apart,omitempty"`    // the link has lost its connection and awaits another one
	DisconnectedFor int64            `json:"apart_ns,omitempty"` // time since the loss
	Routed          bool             `json:"routed,omitempty"`   // packets can reach the peer
	Compressed      *CompressedBytes `json:"packed,omitempty"`   // of a direct link that is compressed
}

// CompressedBytes counts the bytes that compressed links have moved: the users' bytes, and the
// bytes sent for them.
type CompressedBytes struct {
	Sent               uint64 `json:"sent_bytes"`
	Received           uint64 `json:"received_bytes"`
	SentCompressed     uint64 `json:"sent_packed_bytes"`
	ReceivedCompressed uint64 `json:"received_packed_bytes"`
}

// Add adds the counts of other links.
func (p *CompressedBytes) Add(x *CompressedBytes) {
	p.Sent += x.Sent
	p.Received += x.Received
	p.SentCompressed += x.SentCompressed
	p.ReceivedCompressed += x.ReceivedCompressed
}
