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

// Context IDs below ContextLimit are agreed on by IMPI's rule. Those above are
// private to our own sites: each process has its own to give.
const (
	ContextLimit wire.ContextID = 1 << 63

	originShift = 32
	numberShift = 2 // each private number stands for InterContexts IDs
	numbers     = 1 << (originShift - numberShift)
)

// Contexts gives out context IDs by IMPI's rule: members agree on the largest
// that any of them has in use, and the next are the new communicator's.
//
// A process that takes part in several agreements at a time would come to the
// same ID in two of them. So only one of them counts as its own; in the others it
// is busy, and where a member is busy the communicator gets a private ID, which
// the leader has offered along with its part or, if there are members of several
// worlds, which a Confirmation finds. Nobody ever waits for another
// agreement, so that none can wait for each other, in whatever order the members
// begin them. Sites that run another MPI know nothing of this: with them there
// is one agreement at a time.
//
// IDs are never used again.
type Contexts struct {
	max    wire.ContextID
	origin wire.ContextID // of the private IDs
	next   wire.ContextID // private number
	held   bool           // there is an agreement that counts

	// Of private IDs of several worlds:
	home    [16]byte
	bits    uint
	draws   uint64
	claimed map[wire.ContextID]bool
}

// NewContexts has those of MPI_COMM_WORLD and MPI_COMM_SELF in use. No other
// process of the same world has the same origin, which is below 1<<30.
func NewContexts(origin Proc) Contexts {
	return Contexts{max: SelfContext + 1, origin: wire.ContextID(uint32(origin)), bits: PrivateBits}
}

// Offer is what a process contributes to an agreement, and, with those of all
// members combined, what they have agreed on.
type Offer struct {
	Max     wire.ContextID // the largest in use
	Private wire.ContextID // to be used if somebody is busy; 0: none
	Busy    bool           // with another agreement
}

// With combines two offers.
func (o Offer) With(p Offer) Offer {
	return Offer{max(o.Max, p.Max), max(o.Private, p.Private), o.Busy || p.Busy}
}

// Offer begins an agreement. One of the members leads it, whoever. Settle or
// Withdraw must follow.
func (a *Contexts) Offer(lead bool) Offer {
	o := Offer{Max: a.max, Busy: a.held}
	a.held = true
	if lead && a.next < numbers {
		o.Private = ContextLimit | a.origin<<originShift | a.next<<numberShift
		a.next++
	}
	return o
}

// Held reports whether there is an agreement that another one would be busy with.
func (a *Contexts) Held() bool { return a.held }

// Withdraw ends an agreement that came to nothing.
func (a *Contexts) Withdraw(mine Offer) {
	if !mine.Busy {
		a.held = false
	}
}

// Settle ends an agreement and gives the first of the n context IDs of the new
// communicator. Processes that do not become members call it as well. It is
// ErrContexts, for all, if there are no IDs left.
func (a *Contexts) Settle(mine, agreed Offer, n int) (wire.ContextID, error) {
	a.Withdraw(mine)
	if !agreed.Busy {
		a.giveBack(mine)
		return a.take(agreed.Max, n)
	}
	if agreed.Private == 0 {
		return 0, fmt.Errorf("comm: %w: the leader has given %d private ones", ErrContexts, numbers)
	}
	return agreed.Private, nil
}

// giveBack has a private number that was not needed offered again, unless others
// have been offered since.
func (a *Contexts) giveBack(mine Offer) {
	if mine.Private != 0 && mine.Private>>numberShift&(numbers-1) == a.next-1 {
		a.next--
	}
}

// Max is the largest context ID in use here, private ones aside.
func (a *Contexts) Max() wire.ContextID { return a.max }

// take returns the first of n context IDs after the one that members have agreed
// on. ErrContexts is the same for all callers; ErrContextRace is not.
//
// IMPI ch.4, Context IDs: the maximum plus one, and everybody's maximum moves.
func (a *Contexts) take(agreed wire.ContextID, n int) (wire.ContextID, error) {
	if agreed >= ContextLimit-InterContexts {
		return 0, fmt.Errorf("comm: %w: %d is in use", ErrContexts, uint64(agreed))
	}
	if agreed < a.max {
		return 0, fmt.Errorf("comm: %w: agreed on %d, %d is in use", ErrContextRace, uint64(agreed), uint64(a.max))
	}
	a.max = agreed + wire.ContextID(n)
	return agreed + 1, nil
}
