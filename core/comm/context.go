package comm

import (
	"errors"
	"fmt"

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

// Contexts gives out context IDs by IMPI's rule: members agree on the largest
// that any of them has in use, and the next are the new communicator's.
type Contexts struct {
	max wire.ContextID
}

// NewContexts has those of MPI_COMM_WORLD and MPI_COMM_SELF in use.
func NewContexts() Contexts { return Contexts{max: SelfContext + 1} }

// Max is the largest context ID in use here: what this process contributes to
// the agreement.
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
