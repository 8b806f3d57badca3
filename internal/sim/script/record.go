package script

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// How a run can go wrong.
var (
	// ErrMPI is wrapped by what a rank ends with because MPI has failed: an
	// operation gave an error where the program allows none. The error of package
	// mpi is wrapped, too. With faults in the run that may be right.
	ErrMPI = errors.New("script: an MPI operation failed")
	// ErrMismatch is wrapped where MPI did something else than it should have:
	// wrong data, a wrong status, a lost or doubled message. It is never right.
	ErrMismatch = errors.New("script: wrong result")
	// ErrContexts is the ErrMismatch of a rank that gets a context ID twice.
	ErrContexts = fmt.Errorf("%w: a context ID twice", ErrMismatch)
	// ErrLeak is wrapped where something is left of worlds that were left.
	ErrLeak = errors.New("script: something is left of other worlds")
)

// Env is the rank that Run plays.
type Env interface {
	// World is MPI_COMM_WORLD, of as many ranks as the program has.
	World() *mpi.Comm
	// Pause computes for that long.
	Pause(d time.Duration)
	// Log is told of each step of this rank as it begins.
	Log(format string, args ...any)
}

// Buffers is what an Env has to implement, too, if several of its kind share one
// process; mpi.Proc does. Run uses the functions of package mpi otherwise.
type Buffers interface {
	BufferAttach(size int) error
	BufferDetach() (size int, err error)
}

// Record is what one rank got. It has an entry for each message, collective
// operation and communicator at most. Run fills it as it goes, so that it can be
// used even if Run never returns.
type Record struct {
	Rank       int
	Begun      int // steps that were begun by this rank, or passed by
	Ended      bool
	Deliveries []Delivery
	Cancels    []Cancelled
	Results    []Result
	Comms      []Membership
}

// Delivery is a message that was received by the receive of message Msg.
type Delivery struct {
	Msg         int
	Source, Tag int // as the status says, by rank in the communicator
	Count       int // elements
	Truncated   bool
	Sum         uint64 // of the elements
}

// Cancelled is how a Cancel of the program ended.
type Cancelled struct {
	Req
	Cancelled bool
}

// Result is what a collective operation left in a rank's buffer.
type Result struct {
	Step int // of the program, from 0
	Sum  uint64
}

// Membership is a communicator as one of its members sees it.
type Membership struct {
	Step       int // that made it; -1: World
	Name       string
	Context    uint64
	Rank, Size int
	Inter      bool
}

// overlaps tells whether two communicators have a context ID in common: intracommunicators
// have two, others four.
func (m *Membership) overlaps(o *Membership) bool {
	return m.Context < o.Context+2<<b2i(o.Inter) && o.Context < m.Context+2<<b2i(m.Inter)
}

// claim wants the context IDs of a communicator to be those of no other that the rank has
// or has had, in whatever worlds: a late message would match on the wrong one.
func (rec *Record) claim(m Membership) error {
	for _, o := range append([]Membership{{Name: "MPI_COMM_SELF", Context: 2}}, rec.Comms...) {
		if m.overlaps(&o) {
			return fmt.Errorf("%w: communicators %s and %s have context %d", ErrContexts, o.Name, m.Name, max(o.Context, m.Context))
		}
	}
	return nil
}
