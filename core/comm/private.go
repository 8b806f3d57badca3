package comm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// Private context IDs of communicators with members of several worlds. The private IDs of one world
// contain the leader's rank, which procs of other worlds may have too. So for several worlds the
// number of an ID is a hash of the name of the leader's world, its rank and a count. All members
// confirm that they do not use the ID; if one does, another ID is tried.
const (
	WideLimit wire.ContextID = ContextLimit | 1<<62 // the first private ID of several worlds

	// PrivateBits is the number of bits of the hash that are used. A model may use fewer, so that
	// IDs clash.
	PrivateBits = 60

	// drawsLimit is the number of clashes after which the members give up. Even in a space
	// that is three quarters full so many clashes practically never happen.
	drawsLimit = 256

	// lastContext is the first of the IDs that no communicator gets.
	lastContext wire.ContextID = 1<<64 - 64
)

// UnusableID is the flag of a proposal with which a member reports that it cannot use the ID that
// is to be confirmed. Callers must not use the bit for anything else.
const UnusableID uint32 = 1 << 7

// SetWorld sets the name of the process's world, and the number of bits of private IDs, 1 to
// PrivateBits.
func (a *Contexts) SetWorld(world [16]byte, bits uint) { a.home, a.bits = world, bits }

// Claim reserves a private ID of several worlds in this process. It returns false if the process
// already uses the ID, or is confirming it for another communicator.
func (a *Contexts) Claim(id wire.ContextID) bool {
	if a.claimed[id] {
		return false
	}
	if a.claimed == nil {
		a.claimed = make(map[wire.ContextID]bool)
	}
	a.claimed[id] = true
	return true
}

// Release records that the process no longer uses a context ID. It is needed only for IDs that were
// claimed.
func (a *Contexts) Release(id wire.ContextID) { delete(a.claimed, id) }

// Claimed returns the number of IDs that were claimed and not released.
func (a *Contexts) Claimed() int { return len(a.claimed) }

// draw returns an ID that this process has, with high probability, never returned before.
func (a *Contexts) draw() wire.ContextID {
	for {
		a.draws++
		b := binary.BigEndian.AppendUint32(a.home[:len(a.home):len(a.home)], uint32(a.origin))
		h := sha256.Sum256(binary.BigEndian.AppendUint64(b, a.draws))
		number := wire.ContextID(binary.BigEndian.Uint64(h[:]) >> (64 - a.bits))
		if id := WideLimit | number<<numberShift; id < lastContext {
			return id
		}
	}
}

// Confirmation is one process's part in finding a private ID for a communicator with
// members of several worlds, where a member is busy (see Contexts). It works in rounds:
// each member says something, and hears the combination of what all have said, which is the
// same for all. So all members reach the same result.
//
// The leaders, one or more, draw IDs; all members try to claim the one that results. If one
// of them cannot, all give it up, and the next round tries the next one. No member waits
// for another agreement, so there is no deadlock.
type Confirmation struct {
	a     *Contexts
	leads bool
	id    wire.ContextID // the ID to be confirmed; 0 in the first round
	held  bool           // this process has claimed it
	draws int
}

// Confirm begins a confirmation. leads is true if this process draws IDs; at least one member must.
func (a *Contexts) Confirm(leads bool) *Confirmation { return &Confirmation{a: a, leads: leads} }

// Propose returns the process's proposal for this round, to be combined with those of the others.
func (c *Confirmation) Propose() (p Proposal) {
	if c.leads {
		p.Private = c.a.draw() // used if another round is needed
	}
	if c.held = c.id != 0 && c.a.Claim(c.id); !c.held {
		p.Flags = UnusableID
	}
	return p
}

// Decide processes the combination of all members' proposals. over is set once all members have
// claimed an ID. The error is ErrContexts, for all members, if clashes do not end.
func (c *Confirmation) Decide(all Proposal) (id wire.ContextID, over bool, err error) {
	if all.Flags&UnusableID == 0 {
		return c.id, true, nil
	}
	c.Withdraw()
	c.draws++
	switch {
	case c.draws > drawsLimit:
		return 0, true, fmt.Errorf("comm: %w: %d private ones were in use", ErrContexts, drawsLimit)
	case all.Private < WideLimit:
		return 0, true, fmt.Errorf("comm: %w: no leader has drawn a private one", ErrContexts)
	}
	c.id = all.Private
	return 0, false, nil
}

// Withdraw ends a confirmation that was given up.
func (c *Confirmation) Withdraw() {
	if c.held {
		c.a.Release(c.id)
		c.held = false
	}
}
