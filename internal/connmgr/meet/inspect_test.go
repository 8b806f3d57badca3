package meet

import (
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
)

// TestEndedLinksAreTold: a link to another world that a proc has lost is told of for some time,
// until there is another one.
func TestEndedLinksAreTold(t *testing.T) {
	m := New(Settings{Able: true})
	world := dynamic.WorldID{7}
	forget := wireup.Message{Kind: wireup.KindForget, Peer: 3, Meeting: &wireup.OtherWorld{World: world[:]}}
	m.forgotten(1, forget, time.Now().Add(-time.Minute))
	told := func() []links.WorldLink {
		var d links.Node
		m.Describe(&d)
		return d.WorldLinks
	}
	if got := told(); len(got) != 0 {
		t.Errorf("told of long after: %+v", got)
	}
	ended := time.Now()
	m.forgotten(1, forget, ended)
	m.forgotten(1, wireup.Message{Kind: wireup.KindForget, Meeting: &wireup.OtherWorld{World: []byte("short")}}, time.Now())
	if got := told(); len(got) != 1 || got[0].Local != 1 || got[0].Peer != 3 || got[0].World != world.String() || got[0].State != links.StateEnded || !got[0].Since.Equal(ended) {
		t.Errorf("%+v", got)
	}
	m.node.Links.Ask(dynamic.WorldPair{Local: dynamic.WorldProc{World: m.node.World, Rank: 1}, Peer: dynamic.WorldProc{World: world, Rank: 3}}, nil)
	if got := told(); len(got) != 1 || got[0].State != links.StateOpening {
		t.Errorf("once it is asked for again: %+v", got)
	}
}
