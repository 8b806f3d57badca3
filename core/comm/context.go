package comm

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// ErrContexts is wrapped by the error if there are no context IDs left.
var ErrContexts = errors.New("out of context IDs")

// ErrContextRace is wrapped by the error if one process makes two communicators at the same
// time and both would get the same context ID.
var ErrContextRace = errors.New("context ID taken by another communicator meanwhile")

// The context IDs that exist from the start; each is followed by the ID of the communicator's
// collectives.
const (
	WorldContext wire.ContextID = 0
	SelfContext  wire.ContextID = 2
)

// Context IDs below ContextLimit are agreed on by IMPI's rule. Those above are private to our own
// sites: each process has its own range, from which it can assign IDs to communicators.
const (
	ContextLimit wire.ContextID = 1 << 63

	originShift = 32
	// SurvivalContext is the context ID of messages by which procs of a job that continues without
	// some of its procs agree: it stays usable whatever is given up.
	SurvivalContext = ContextLimit - 1

	numberShift = 2 // each private number stands for InterContexts IDs
	numbers     = 1 << (originShift - numberShift)
)

// Contexts assigns context IDs by IMPI's rule: the members of a new communicator agree on
// the largest ID that any of them has in use, and the communicator gets the next ones.
//
// A process that takes part in several agreements at a time would get the same ID in two of
// them. So only one of them counts for the process; in the others it is busy. If a member
// is busy the communicator gets a private ID, which the leader has offered along with its
// maximum or, if there are members of several worlds, which a Confirmation finds. No
// agreement waits for another one, so there is no deadlock, in whatever order the members
// begin them. Sites that run another MPI do not know this: with them there is one agreement
// at a time.
//
// IDs are never reused (docs/decisions/0020-context-ids.md).
type Contexts struct {
	max    wire.ContextID
	origin wire.ContextID // process number in its private IDs
	next   wire.ContextID // the next private number
	held   bool           // an agreement in which this process was not Busy is in progress

	// For private IDs of several worlds:
	home    [16]byte
	bits    uint
	draws   uint64
	claimed map[wire.ContextID]bool
}

// NewContexts returns Contexts in which the IDs of MPI_COMM_WORLD and MPI_COMM_SELF are in use.
// origin is below 1<<30, and different for each process of a world.
func NewContexts(origin Proc) Contexts {
	return Contexts{max: SelfContext + 1, origin: wire.ContextID(uint32(origin)), bits: PrivateBits}
}

// ContextUse is what a process contributes to an agreement and, after all members' contributions
// were combined, the result of it.
type ContextUse struct {
	Max     wire.ContextID // the largest ID in use
	Private wire.ContextID // used if a process is busy; 0: none
	Busy    bool           // another agreement is in progress
}

// Combine combines two contributions.
func (o ContextUse) Combine(p ContextUse) ContextUse {
	return ContextUse{max(o.Max, p.Max), max(o.Private, p.Private), o.Busy || p.Busy}
}

// BeginAgreement begins an agreement and returns what this process contributes. lead is set at one
// of the members. Conclude or Withdraw must follow.
func (a *Contexts) BeginAgreement(lead bool) ContextUse {
	o := ContextUse{Max: a.max, Busy: a.held}
	a.held = true
	if lead && a.next < numbers {
		o.Private = ContextLimit | a.origin<<originShift | a.next<<numberShift
		a.next++
	}
	return o
}

// AgreementOpen reports whether an agreement is in progress for which this process was not busy, so
// that it would be busy in another one.
func (a *Contexts) AgreementOpen() bool { return a.held }

// Withdraw ends an agreement that has failed. mine is what BeginAgreement returned.
func (a *Contexts) Withdraw(mine ContextUse) {
	if !mine.Busy {
		a.held = false
	}
}

// Conclude ends an agreement and returns the first of the n context IDs of the new
// communicator. Processes that do not become members call it as well. The error is
// ErrContexts, for all of them, if there are no IDs left.
func (a *Contexts) Conclude(mine, agreed ContextUse, n int) (wire.ContextID, error) {
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

// giveBack makes a private number that was not needed available again, unless later ones
// have been offered since.
func (a *Contexts) giveBack(mine ContextUse) {
	if mine.Private != 0 && mine.Private>>numberShift&(numbers-1) == a.next-1 {
		a.next--
	}
}

// Max returns the largest context ID in use here, not counting private ones.
func (a *Contexts) Max() wire.ContextID { return a.max }

// take returns the first of n context IDs after the one that the members have agreed on.
// All members get ErrContexts alike; ErrContextRace is an error of this process alone.
//
// IMPI ch.4, Context IDs: the maximum plus one, and everybody's maximum increases.
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
