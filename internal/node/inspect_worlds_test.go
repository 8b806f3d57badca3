package node

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/links"
)

// TestLinksToOtherWorldsAreShown: both jobs tell of the other, without secrets.
func TestLinksToOtherWorldsAreShown(t *testing.T) {
	_, shared := sharedNames(t)
	a := start(t, heatJob(shared, "holds", 1, portVariable, "opens", "MEET_END", "hang"))[0]
	b := start(t, heatJob(shared, "holds", 2, "MEET_END", "hang"))[0]
	a.out.Line(t, "[0] met")
	b.out.Line(t, "[1] met")
	var said [2]*links.Node
	for i, r := range []*running{a, b} {
		said[i] = r.n.control.Describe(context.Background(), links.Request{})
		text, err := json.Marshal(said[i])
		if err != nil {
			t.Fatal(err)
		}
		if s := string(text); strings.Contains(s, "key=") || strings.Contains(s, "impi-port") {
			t.Errorf("it shows a port: %s", s)
		}
		if n := len(said[i].WorldLinks); n != 2 {
			t.Fatalf("%d links to other worlds: %s", n, text)
		}
	}
	if said[0].World == said[1].World || said[0].Ports != 1 || said[1].Ports != 0 {
		t.Errorf("%+v\n%+v", said[0], said[1])
	}
	peers := 0
	for _, x := range said[0].WorldLinks {
		peers += x.Peer
		if x.World != said[1].World || x.State != links.StateLinked || x.Transport != "unix" || x.Plane != "fd" || x.Local != 0 || x.Since.IsZero() {
			t.Errorf("%+v", x)
		}
	}
	if x := said[1].WorldLinks[0]; peers != 1 || x.World != said[0].World || x.Peer != 0 || x.State != links.StateLinked {
		t.Errorf("%+v of the other end", x)
	}
	for _, r := range []*running{a, b} {
		r.cancel(context.Canceled)
		<-r.done
	}
}
