package node

import (
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/wire"
)

// fallBacks are what the operator has been told of links that are not what the file
// prefers most. What holds for one pair of procs holds as a rule for all pairs of
// the two sites, so only the first is a warning.
type fallBacks struct {
	mu   sync.Mutex
	said map[fallBack]bool
}

// noWay is why a pair has no direct link whose sites have nothing to try.
const noWay = "no transport is common to both sites and allowed by the routes"

// fallBack is from what the file prefers to another transport, or to the agents.
type fallBack struct {
	to wire.ClientRank
	by string
}

// level is at what level to tell of one.
func (f *fallBacks) level(to wire.ClientRank, by string) hclog.Level {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said[fallBack{to, by}] {
		return hclog.Debug
	}
	if f.said == nil {
		f.said = make(map[fallBack]bool)
	}
	f.said[fallBack{to, by}] = true
	return hclog.Warn
}

// goesByAgents warns that the packets of a pair go through the agents, although its
// route wants direct links.
func (n *node) goesByAgents(x pair, reason string) {
	n.log.Log(n.fallBacks.level(n.job.Procs[x.peer].Client, ""), "no direct link: packets go through the agents", "from", x.local, "to", x.peer, "reason", reason)
}
