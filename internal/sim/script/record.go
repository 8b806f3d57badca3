package script

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// Errors of a run.
var (
	// ErrMPI is wrapped by the error of a rank in which an MPI operation failed where the program
	// allows no error. The error of package mpi is wrapped, too. In runs with faults such an error
	// may be right.
	ErrMPI = errors.New("script: an MPI operation failed")
	// ErrMismatch is wrapped if MPI did something wrong: wrong data, a wrong status, a lost or
	// doubled message. It is never right.
	ErrMismatch = errors.New("script: wrong result")
	// ErrContexts is the ErrMismatch of a rank that gets a context ID twice.
	ErrContexts = fmt.Errorf("%w: a context ID twice", ErrMismatch)
	// ErrLeak is wrapped if something is left of worlds that were disconnected.
	ErrLeak = errors.New("script: something is left of other worlds")
)

// Env is the environment of the rank that Run plays.
type Env interface {
	// World returns MPI_COMM_WORLD, of as many ranks as the program has.
	World() *mpi.Comm
	// Pause computes for d of virtual time.
	Pause(d time.Duration)
	// Log is called with each step of this rank when it begins.
	Log(format string, args ...any)
}

// Buffers must also be implemented by an Env if several of them share one process; mpi.Proc
// implements it. Otherwise Run uses the functions of package mpi.
type Buffers interface {
	BufferAttach(size int) error
	BufferDetach() (size int, err error)
}

// Record holds what one rank has received. It has at most one entry for each message, collective
// operation and communicator. Run adds entries while it runs, so a Record can be used even if Run
// never returns.
type Record struct {
	Rank       int
	Begun      int // number of steps that this rank has begun or skipped
	Ended      bool
	Deliveries []Delivery
	Cancels    []Cancelled
	Results    []Result
	Comms      []Membership
	Said       []string // by Recover: each result that all that are left must have
}

// Delivery is a message that was received by the receive of message Msg.
type Delivery struct {
	Msg         int
	Source, Tag int // from the status; Source is a rank in the communicator
	Count       int // elements
	Truncated   bool
	Sum         uint64 // sum of the elements
}

// Cancelled is the result of a Cancel of the program.
type Cancelled struct {
	Req
	Cancelled bool
}

// Result is the content of a rank's buffer after a collective operation.
type Result struct {
	Step int // step of the program, from 0
	Sum  uint64
}

// Membership is a communicator as one of its members sees it.
type Membership struct {
	Step       int // step that made it; -1: World
	Name       string
	Context    uint64
	Rank, Size int
	Inter      bool
}

// overlaps reports whether two communicators have a context ID in common: intracommunicators have
// two, others four.
func (m *Membership) overlaps(o *Membership) bool {
	return m.Context < o.Context+2<<truth[int](o.Inter) && o.Context < m.Context+2<<truth[int](m.Inter)
}

// claim checks that the context IDs of a communicator differ from those of all others that the rank
// has or has had, in any world: a late message would match on the wrong one.
func (rec *Record) claim(m Membership) error {
	for _, o := range append([]Membership{{Name: "MPI_COMM_SELF", Context: 2}}, rec.Comms...) {
		if m.overlaps(&o) {
			return fmt.Errorf("%w: communicators %s and %s have context %d", ErrContexts, o.Name, m.Name, max(o.Context, m.Context))
		}
	}
	return nil
}
