package node

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// boardFor makes the board of a host's procs. Without one, why says the reason:
// collective operations go by messages then.
func (n *node) boardFor(h *ownHost) (b *wireup.Board, why string) {
	if why = n.noBoard(h); why != "" {
		return nil, why
	}
	b, err := wireup.NewBoard(h.Config.Procs)
	if err != nil {
		n.log.Warn("collective operations go by messages", "host", h.Config.Address, "error", err)
		return nil, err.Error()
	}
	return b, ""
}

// noBoard returns why the procs of a host have no board, or "" if they have one. A board is shared
// memory, so only procs whose links to each other would be shared memory too have one.
func (n *node) noBoard(h *ownHost) string {
	here := n.procs.OfHost(h.Index)
	switch {
	case n.survival.on:
		return "survive = true"
	case h.Config.NoBoard:
		return "board = false"
	case len(here) < 2:
		return "there is one proc"
	case len(here) > board.MaxProcs:
		return fmt.Sprintf("there are more than %d procs", board.MaxProcs)
	case n.opt.Site.Log.Trace != "":
		return "packets are traced"
	}
	for _, p := range here {
		if !p.KnowsBoards() {
			return fmt.Sprintf("the library of %v does not know boards", p.ID())
		}
	}
	a, b := here[0].Rank(), here[1].Rank()
	if routes.UsesNative(n.routes, a, b) {
		return "the site's own MPI carries them, and does some blocking ones itself"
	}
	candidates := n.direct.Candidates(direct.Pair{Local: a, Peer: b}) // the route is that of the site to itself, for all pairs
	if len(candidates) == 0 || !slices.Contains(candidates[0].Transport.Capabilities().DataPlanes, transports.PlanePeerSHM) {
		return "links of its procs are not of shared memory"
	}
	return ""
}
