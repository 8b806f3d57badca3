package wireup

import (
	"cmp"
	"slices"
)

// NoPeer stands in an Account for procs that are not known, or not of the job, and for all procs
// that were left out.
const NoPeer = -1

// MaxAccountPeers is the maximum number of entries about other procs of each kind in an Account.
const MaxAccountPeers = 64

const mostCallNames = 256

// Account is what a proc has counted since its MPI_Init, if the job says that it counts.
type Account struct {
	Time  int64     `json:"time_ns"`           // time since MPI_Init was called
	Init  int64     `json:"init_ns,omitempty"` // time in MPI_Init
	Calls []CallSum `json:"calls,omitempty"`
	Waits []WaitSum `json:"waits,omitempty"`
	Sent  []SentSum `json:"sent,omitempty"`
}

// CallSum is the total of all calls of one MPI function.
type CallSum struct {
	Name  string `json:"name"` // name in C
	Class string `json:"class"`
	Calls uint64 `json:"calls"`
	Time  int64  `json:"time_ns"` // time in the calls
}

// WaitSum is the time for which the proc was blocked in calls of MPI because of another proc.
type WaitSum struct {
	Cause string `json:"cause"`
	Peer  int    `json:"peer"` // rank, or NoPeer
	Time  int64  `json:"time_ns"`
}

// SentSum is the total that the proc has sent to another one.
type SentSum struct {
	Peer     int    `json:"peer"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"` // bytes of data
}

// Shorten keeps MaxAccountPeers entries of each kind, and sums up the others.
func (a *Account) Shorten() {
	slices.SortFunc(a.Waits, func(x, y WaitSum) int {
		return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.Peer, y.Peer), cmp.Compare(x.Cause, y.Cause))
	})
	if n := len(a.Waits); n > MaxAccountPeers {
		rest := make(map[string]int64)
		for _, w := range a.Waits[MaxAccountPeers:] {
			rest[w.Cause] += w.Time
		}
		a.Waits = a.Waits[:MaxAccountPeers:MaxAccountPeers]
		for cause, t := range rest {
			a.Waits = append(a.Waits, WaitSum{Cause: cause, Peer: NoPeer, Time: t})
		}
	}
	slices.SortFunc(a.Sent, func(x, y SentSum) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Messages, x.Messages), cmp.Compare(x.Peer, y.Peer))
	})
	if n := len(a.Sent); n > MaxAccountPeers {
		rest := SentSum{Peer: NoPeer}
		for _, s := range a.Sent[MaxAccountPeers:] {
			rest.Messages, rest.Bytes = rest.Messages+s.Messages, rest.Bytes+s.Bytes
		}
		a.Sent = append(a.Sent[:MaxAccountPeers:MaxAccountPeers], rest)
	}
}

// Truncate cuts texts and lists that are longer, or stand for more, than those that a proc of this
// release sends.
func (a *Account) Truncate(procs int) {
	if a == nil {
		return
	}
	a.Calls = a.Calls[:min(len(a.Calls), mostCallNames)]
	for i := range a.Calls {
		short(&a.Calls[i].Name)
		short(&a.Calls[i].Class)
	}
	a.Waits = slices.DeleteFunc(a.Waits, func(w WaitSum) bool { return w.Peer < NoPeer || w.Peer >= procs || w.Time < 0 })
	a.Sent = slices.DeleteFunc(a.Sent, func(s SentSum) bool { return s.Peer < NoPeer || s.Peer >= procs })
	for i := range a.Waits {
		short(&a.Waits[i].Cause)
	}
	a.Shorten()
}
