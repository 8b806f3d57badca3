package direct

import (
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
)

// history is what has been tried to link the pairs, for whoever asks why a pair
// is linked as it is. Its zero value is empty.
type history struct {
	mu    sync.Mutex
	pairs map[Pair]*record
}

// record is the history of one pair: at most one try is kept for each candidate.
type record struct {
	tries       []try
	transport   string // of the link that the proc was given; empty: none
	plane       string
	planeReason string
	id          host.LinkID // ID at the plugin that its bytes pass through
	dialled     bool
	since       time.Time // of the link, or of the decision to have none
	reason      string    // why there is none
	compress    string    // how data of the proc are compressed; empty: they are not
}

type try struct {
	transport, address string
	verdict            links.Verdict
	rule               route.Rule
	reason             string
	at                 time.Time
	count              int
}

func (h *history) with(x Pair, f func(*record)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pairs == nil {
		h.pairs = make(map[Pair]*record)
	}
	r := h.pairs[x]
	if r == nil {
		r = &record{}
		h.pairs[x] = r
	}
	f(r)
}

func (h *history) tried(x Pair, w routes.Candidate, v links.Verdict, rule route.Rule, reason string) {
	h.with(x, func(r *record) {
		for i := range r.tries {
			if t := &r.tries[i]; t.transport == w.Transport.Name && t.address == w.Address {
				t.verdict, t.rule, t.reason, t.at = v, rule, reason, time.Now()
				t.count++
				return
			}
		}
		r.tries = append(r.tries, try{w.Transport.Name, w.Address, v, rule, reason, time.Now(), 1})
	})
}

func (h *history) failed(x Pair, w routes.Candidate, err error) {
	switch dynamic.VerdictOf(err) {
	case dynamic.NotAllowed:
		h.tried(x, w, links.Failed, route.PeerRoutes, "the routes of the peer's site do not allow it")
	case dynamic.TieLost:
		h.tried(x, w, links.Lost, "", "both ends dialled at once: the link of the lower rank is used")
	default:
		h.tried(x, w, links.Failed, "", err.Error())
	}
}

func (h *history) given(x Pair, m *wireup.Message, id host.LinkID, dialled bool) {
	h.with(x, func(r *record) {
		r.transport, r.plane, r.planeReason, r.id = m.Transport, m.DataPlane, m.Reason, id
		r.dialled, r.since, r.reason = dialled, time.Now(), ""
		if m.Compress != nil { // the message about a further connection omits it
			r.compress = m.Compress.String()
		}
	})
}

func (h *history) refused(x Pair, reason string) {
	h.with(x, func(r *record) {
		r.transport, r.plane, r.planeReason, r.id = "", "", "", host.LinkID{}
		r.since, r.reason, r.compress = time.Now(), reason, ""
	})
}

func (h *history) of(x Pair) record {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.pairs[x]
	if r == nil {
		return record{}
	}
	c := *r
	c.tries = append([]try(nil), r.tries...)
	return c
}

func (r *record) lastTry(transport, address string) (try, bool) {
	for _, t := range r.tries {
		if t.transport == transport && t.address == address {
			return t, true
		}
	}
	return try{}, false
}
