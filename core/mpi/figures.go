package mpi

import (
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Figures are what the library knows of itself, for tools. Those that count grow
// from Init on; the others are as things are now.
type Figures struct {
	Messages   uint64 // sent to procs of this job: the first packet has left, or waits to
	Completed  uint64 // sends and receives
	Sent       uint64 // bytes, by the links that count them
	Received   uint64
	Links      int // to other procs, without an agent between
	Unexpected int // messages that wait for a receive
	Posted     int // receives that wait for a message
	Buffered   int // bytes of BufferAttach that are taken

	PacketData int // most bytes of data in a packet to another site (C_DATALEN)
	AckMark    int // packets after which an acknowledgement is asked for
	HiWater    int // packets that may be without one
	Check      bool
}

// Roster is what a rank has to know of all ranks of the job. It does not change
// and is the only thing that grows with the job: where a program has many ranks,
// those of one client share one.
type Roster proc.MemberTable

// NewRoster makes the roster of the ranks to which a job's procs look like this.
// like, if there is one, is of another client of the same job: what is the same
// is shared. procs is not kept.
func NewRoster(procs []life.Proc, like *Roster) (*Roster, error) {
	return outRoster(proc.NewMemberTable(procs, like.in()))
}
