package comm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// ErrContexts is wrapped when there are no context IDs left.
var ErrContexts = errors.New("out of context IDs")

// ErrContextRace is wrapped when two communicators were made at the same time
// by one process, so that both would get the same context ID.
var ErrContextRace = errors.New("context ID taken by another communicator meanwhile")

// The context IDs that exist from the start; each is followed by that of the
// communicator's collectives.
const (
	WorldContext wire.ContextID = 0
	SelfContext  wire.ContextID = 2
)

// ContextLimit is where context IDs end (IMPI_MAX_CID).
const ContextLimit wire.ContextID = 1<<64 - 16

// Busy is what a process contributes to an agreement while it makes another
// communicator. As it is larger than every ID, all members see it and agree again.
const Busy wire.ContextID = 1<<64 - 1

// Failed is what a process contributes that cannot make the communicator. All
// members see it once nobody is busy, and none makes it.
const Failed wire.ContextID = 1<<64 - 2

// Contexts gives out context IDs by IMPI's rule: members agree on the largest
// that any of them has in use, and the next are the new communicator's.
//
// A process that makes several communicators at a time must take part in one
// agreement only, or both come to the same ID. Which one is settled without a
// deadlock, whatever the order in which processes begin: it has the parent with
// the lowest context ID, which is the same everywhere.
type Contexts struct {
	max    wire.ContextID
	making []wire.ContextID // parents of the communicators that are being made
	turn   wire.ContextID   // the parent of the one that takes part in an agreement
	taken  bool             // there is one
}

// NewContexts has those of MPI_COMM_WORLD and MPI_COMM_SELF in use.
func NewContexts() Contexts { return Contexts{max: SelfContext + 1} }

// Begin says that a communicator is to be made of members of parent. End must follow.
func (a *Contexts) Begin(parent wire.ContextID) { a.making = append(a.making, parent) }

// Offer gives what this process contributes to an agreement of parent's members.
// False: it must be Busy instead, as another agreement comes first.
func (a *Contexts) Offer(parent wire.ContextID) (mine wire.ContextID, ok bool) {
	if a.taken || parent != slices.Min(a.making) {
		return a.max, false
	}
	a.turn, a.taken = parent, true
	return a.max, true
}

// Withdraw ends this process's part in an agreement that came to nothing.
func (a *Contexts) Withdraw(parent wire.ContextID) {
	if a.taken && a.turn == parent {
		a.taken = false
	}
}

// End says that the communicator is made, or has failed.
func (a *Contexts) End(parent wire.ContextID) {
	a.Withdraw(parent)
	i := slices.Index(a.making, parent)
	a.making = slices.Delete(a.making, i, i+1)
}

// Max is the largest context ID in use here.
func (a *Contexts) Max() wire.ContextID { return a.max }

// Take gives the context ID of a new communicator, agreed being the maximum of
// Max over all members, as a reduction over them has found. The following ID is
// taken too, for its collectives. Processes that do not become members call it
// as well. ErrContexts is the same for all callers; ErrContextRace is not.
//
// IMPI ch.4, Context IDs: the maximum plus one, and everybody's maximum moves.
func (a *Contexts) Take(agreed wire.ContextID) (wire.ContextID, error) {
	if agreed >= ContextLimit {
		return 0, fmt.Errorf("comm: %w: %d is in use", ErrContexts, uint64(agreed))
	}
	if agreed < a.max {
		return 0, fmt.Errorf("comm: %w: agreed on %d, %d is in use", ErrContextRace, uint64(agreed), uint64(a.max))
	}
	a.max = agreed + 2
	return agreed + 1, nil
}
