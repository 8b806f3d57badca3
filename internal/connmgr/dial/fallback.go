package dial

import (
	"net/netip"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// FallBacks warns the operator of links that are not what the file prefers most. What holds for one
// pair of procs usually holds for all pairs of the two sites, so only the first is a warning.
type FallBacks struct {
	Log    hclog.Logger
	Routes *routes.Table

	mu   sync.Mutex
	said map[fallBack]bool
}

// NoCandidate is the reason why a pair whose sites have nothing to try has no direct link.
const NoCandidate = "no transport is common to both sites and allowed by the routes"

// fallBack is a use of a transport that is not preferred, between this site and another.
type fallBack struct {
	to wire.ClientRank
	by string // empty: the agents
}

// level gives the log level for a fall-back: the first between two sites is a warning.
func (f *FallBacks) level(to wire.ClientRank, by string) hclog.Level {
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

// ByAgents warns that the packets of a pair go through the agents, although its route asks for
// direct links. remedy is what to do about it, or empty if that is not known.
func (f *FallBacks) ByAgents(from, to wire.WorldRank, reason, remedy string) {
	w := f.Routes.World
	args := []any{"from", from, "to", to, "from_host", addressOf(w, from), "to_host", addressOf(w, to), "reason", reason}
	if remedy != "" {
		args = append(args, "remedy", remedy)
	}
	f.Log.Log(f.level(w.Procs.At(to).Client, ""), "no direct link: packets go through the agents", args...)
}

func addressOf(w *startup.Job, rank wire.WorldRank) netip.Addr {
	return w.Hosts[w.Procs.At(rank).Host].Address.Addr()
}

// Warn warns that a link is not by the transport that the file prefers most, if another one was
// tried before and failed. what is a link of procs or of agents.
func (f *FallBacks) Warn(what string, to wire.ClientRank, by routes.Candidate, s *Dialing) {
	for _, m := range s.FailedCandidates() {
		w := s.Candidates[m.Candidate]
		if w.Transport == by.Transport || m.Verdict == dynamic.NotAllowed { // another address of it; or ruled out by the peer's routes
			continue
		}
		f.Log.Log(f.level(to, by.Transport.Name), "a "+what+" is not by the transport that the route prefers, which failed",
			"to", f.Routes.ClientName(to), "transport", by.Transport.Name, "encrypted", by.Transport.Capabilities().Has(transports.FeatureEncrypted),
			"preferred", w.Transport.Name, "reason", m.Err)
		return
	}
}
