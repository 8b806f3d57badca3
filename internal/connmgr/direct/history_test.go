package direct

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestHistoryKeepsTheLastTryOfEachCandidate(t *testing.T) {
	var h history
	x := Pair{0, 2}
	tcp := routestest.Transport("tcp", transports.ReachNetwork)
	one, two := routes.Candidate{Transport: tcp, Address: "t1"}, routes.Candidate{Transport: tcp, Address: "t2"}
	h.failed(x, one, errors.New("nobody there"))
	h.failed(x, two, &dynamic.RefusedError{Verdict: dynamic.NotAllowed, Proven: true})
	h.tried(x, one, links.Chosen, "", "it works")
	r := h.of(Pair{0, 2})
	if got, ok := r.lastTry("tcp", "t1"); !ok || got.verdict != links.Chosen || got.count != 2 {
		t.Errorf("%+v", got)
	}
	if got, _ := r.lastTry("tcp", "t2"); got.verdict != links.Failed || got.rule != route.PeerRoutes {
		t.Errorf("%+v", got)
	}
	if _, ok := r.lastTry("unix", "t1"); ok {
		t.Error("another transport's try is taken for it")
	}
	if r := h.of(Pair{2, 0}); len(r.tries) != 0 {
		t.Errorf("the other end has %+v", r)
	}
}

// TestUnprovenRefusal: anybody may have said it, so it is no word about routes.
func TestUnprovenRefusal(t *testing.T) {
	var h history
	w := routes.Candidate{Transport: routestest.Transport("tcp", transports.ReachNetwork), Address: "t1"}
	h.failed(Pair{0, 1}, w, &dynamic.RefusedError{Verdict: dynamic.NotAllowed})
	r := h.of(Pair{0, 1})
	if got, _ := r.lastTry("tcp", "t1"); got.rule != "" {
		t.Errorf("%+v", got)
	}
}

func TestHistoryOfALinkThatWasLost(t *testing.T) {
	var h history
	x := Pair{0, 1}
	h.given(x, &wireup.Message{Transport: "shm", DataPlane: "peer-shm", Reason: "why"}, host.LinkID{}, true)
	if r := h.of(Pair{0, 1}); r.transport != "shm" || r.plane != "peer-shm" || r.planeReason != "why" || !r.dialled || r.since.IsZero() {
		t.Errorf("%+v", r)
	}
	h.refused(x, "the proc has ended")
	if r := h.of(Pair{0, 1}); r.transport != "" || r.plane != "" || r.planeReason != "" || r.reason != "the proc has ended" {
		t.Errorf("%+v", r)
	}
}
