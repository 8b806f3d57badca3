package comm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// Private context IDs of communicators with members of several worlds. Those of one
// world have the rank of the leader in them, which another world has as well. So the
// number of such an ID is drawn from the name of the leader's world, its rank and a
// count, and all members confirm that they do not use it, or another one is drawn.
const (
	WideLimit wire.ContextID = ContextLimit | 1<<62 // those from here on are of several worlds

	// PrivateBits is how many bits are drawn. A model may have fewer, so that IDs clash.
	PrivateBits = 60

	// drawsLimit is after how many clashes the members give up. Even in a space that is
	// three quarters full that many do not come to pass.
	drawsLimit = 256

	// lastContext is where the IDs begin that no communicator gets.
	lastContext wire.ContextID = 1<<64 - 64
)

// Taken is the flag of a proposal by which a member says that it cannot have the ID
// that is to be confirmed. Callers must have no other use for it.
const Taken uint32 = 1 << 7

// Qualify says of which world the process is, and how many bits of private IDs are
// drawn, 1 to PrivateBits.
func (a *Contexts) Qualify(world [16]byte, bits uint) { a.home, a.bits = world, bits }

// Claim has the process use a private ID of several worlds. False: it uses it already,
// or is just confirming it for another communicator.
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

// Release says that the process does not use a context ID any more. It matters for
// those of Claim only.
func (a *Contexts) Release(id wire.ContextID) { delete(a.claimed, id) }

// Claimed is the number of IDs that Claim has given and Release has not taken back.
func (a *Contexts) Claimed() int { return len(a.claimed) }

// draw returns an ID that this process has never given before, mostly.
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
// members of several worlds, where one of them is busy (see Contexts). It goes in
// rounds: each member says something, and hears the sum of what all have said. What
// they hear is the same, so that all of them come to the same end.
//
// The leaders, one or more, draw; all members claim what came of it. Where one member
// could not, nobody has it, and the next round is about the next draw. No member ever
// waits for another agreement, so that none can wait for each other.
type Confirmation struct {
	a     *Contexts
	leads bool
	id    wire.ContextID // that is to be confirmed; 0: in the first round there is none
	held  bool           // claimed here
	draws int
}

// Confirm begins a confirmation.
func (a *Contexts) Confirm(leads bool) *Confirmation { return &Confirmation{a: a, leads: leads} }

// Say returns what the process tells the others in this round.
func (c *Confirmation) Say() (p Proposal) {
	if c.leads {
		p.Private = c.a.draw() // in case that it is needed
	}
	if c.held = c.id != 0 && c.a.Claim(c.id); !c.held {
		p.Flags = Taken
	}
	return p
}

// Hear takes the sum of what all have said. Once there is an ID, all of them have
// claimed it. It is ErrContexts, for all, if there is no end of clashes.
func (c *Confirmation) Hear(all Proposal) (id wire.ContextID, over bool, err error) {
	if all.Flags&Taken == 0 {
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

// Withdraw ends a confirmation that comes to nothing.
func (c *Confirmation) Withdraw() {
	if c.held {
		c.a.Release(c.id)
		c.held = false
	}
}
