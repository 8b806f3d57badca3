package meet

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// TestLinkThatBreaksWhileItIsLetIn has a proc ask for a link while its node lets one in,
// which breaks: the proc gets another.
func TestLinkThatBreaksWhileItIsLetIn(t *testing.T) {
	card, err := (&dynamic.Card{Version: dynamic.CardVersion}).AppendText(nil)
	if err != nil {
		t.Fatal(err)
	}
	table := &routes.Table{Site: &config.Site{Hosts: []config.Host{{Procs: 1}}}}
	set := procs.Unstarted(procs.Settings{Routes: table, Log: hclog.NewNullLogger()}, 1, ending.InMPI)
	dials, token := 0, dynamic.Token{1}
	m := New(Settings{
		Ctx: context.Background(), Begin: func(func()) bool { dials++; return true },
		Routes: table, Procs: set, Token: token, Able: true, Log: hclog.NewNullLogger(),
	})
	p, other := set.All()[0], dynamic.World{2}
	pair := m.pairOf(p, 0)
	pair.Peer.World = other
	letIn := func() {
		t.Helper()
		if v := m.links.Arrive(pair); v != dynamic.Accepted {
			t.Fatal(v)
		}
	}
	letIn()
	m.openLink(p, 0, &wireup.Meeting{World: other[:], Secret: make([]byte, dynamic.TokenSize), Card: string(card)})
	if dials != 0 {
		t.Fatal("there is one already")
	}
	if m.broke(p, pair); dials != 1 {
		t.Fatalf("%d links are dialled instead of the one that broke", dials)
	}
	m.links.Ties.Made(pair)
	m.links.Give(pair, linked{})
	m.drop(pair)
	letIn()
	if m.broke(p, pair); dials != 1 {
		t.Error("nobody has asked for this one")
	}
}
