package construct

import "github.com/openimpi/impi/internal/engine/proc"

// rangeKey is the info key that says by whose loss a communicator is revoked, as the proposal of
// failure mitigation has it.
const rangeKey = "mpi_error_range"

// The values of rangeKey. Without it, and with any other value, no loss revokes the communicator.
const (
	rangeGroup    = "group"    // the loss of a member
	rangeUniverse = "universe" // the loss of any proc of the job or of a known world
)

// scope revokes a communicator if its range has been reached: a member is lost, or of all procs one
// that is not among the first known. The process is locked.
func (r *recovery) scope(c *proc.Comm, known int) {
	lost := r.p.Survival.Lost()
	hints := c.State().Hints
	if len(lost) == 0 || hints == nil {
		return
	}
	reached := false
	switch value, _, _ := hints.Get(rangeKey); value {
	case rangeGroup:
		for _, peer := range lost {
			reached = reached || c.HasMember(peer)
		}
	case rangeUniverse:
		reached = len(lost) > known
	}
	if reached {
		r.revoke(c)
	}
}

func (r *recovery) scopes() {
	for _, c := range r.p.Survival.Comms() {
		r.scope(c, len(r.p.Survival.Lost())-1)
	}
}

// setHints gives a communicator its hints, which may say by whose loss it is revoked. known is how
// many procs were lost when the call began.
func setHints(c *proc.Comm, hints *proc.Info, known int) {
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	c.State().Hints = hints
	if r, ok := recoveryOf(p); ok {
		r.scope(c, known)
	}
}

func recoveryOf(p *proc.Process) (*recovery, bool) {
	if p.Survival == nil {
		return nil, false
	}
	r, ok := p.Survival.Recovery.(*recovery)
	return r, ok
}

func lostNow(p *proc.Process) int {
	if p.Survival == nil {
		return 0
	}
	p.Lock()
	defer p.Unlock()
	return len(p.Survival.Lost())
}
