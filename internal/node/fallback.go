package node

import (
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/transports"
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

// misses are the ways that have failed before one that worked, in their order.
type misses struct {
	names, reasons []string
}

// add notes a way that failed. One that the peer's routes rule out was none.
func (m *misses) add(w way, err error) {
	if refused(err) != dynamic.NotAllowed {
		m.names = append(m.names, w.t.name)
		m.reasons = append(m.reasons, err.Error())
	}
}

// fellBack warns that a link is not by the transport that the file prefers most, if
// another one was tried before and failed. what is a link of procs or of agents.
func (n *node) fellBack(what string, to wire.ClientRank, by *transport, m misses) {
	for i, name := range m.names {
		if name == by.name {
			continue // another address of its
		}
		n.log.Log(n.fallBacks.level(to, by.name), "a "+what+" is not by the transport that the route prefers, which failed",
			"to", n.clientName(to), "transport", by.name, "encrypted", by.Capabilities().Has(transports.FeatureEncrypted),
			"preferred", name, "reason", m.reasons[i])
		return
	}
}

// goesByAgents warns that the packets of a pair go through the agents, although its
// route wants direct links.
func (n *node) goesByAgents(x pair, reason string) {
	n.log.Log(n.fallBacks.level(n.job.Procs[x.peer].Client, ""), "no direct link: packets go through the agents", "from", x.local, "to", x.peer, "reason", reason)
}
