package spawn

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
)

// offerRun tells a HostOffer of events, and writes down what it wants, with the time in ms.
type offerRun struct {
	o    *HostOffer
	now  time.Time
	said strings.Builder
}

func (r *offerRun) event(e string) {
	failed := dynamic.DialResult{Err: errors.New("no"), Failure: dynamic.NotListening}
	switch verb, n := e, 0; {
	case verb == "begin":
		r.o.Begin(0)
	case scan(e, "ways %d", &n):
		r.o.Candidates(r.now, n)
	case verb == "drained":
		r.o.Drained(r.now)
	case verb == "linked":
		r.o.Dialled(r.now, dynamic.DialResult{})
	case verb == "failed":
		r.o.Dialled(r.now, failed)
	case verb == "unlike": // a verdict of the host's greeting is no end
		r.o.Dialled(r.now, dynamic.DialResult{Err: errors.New("no"), Verdict: dynamic.NotAllowed})
	case verb == "busy":
		r.o.Dialled(r.now, dynamic.DialResult{Err: errors.New("no"), Verdict: dynamic.Busy})
	case verb == "refused":
		r.o.Refused()
	case scan(e, "procs %d", &n):
		r.o.Changed(n)
	case verb == "taken":
		r.o.Taken()
	case verb == "ended":
		r.o.Ended(r.now)
	case verb == "stop":
		r.o.Stop()
	case scan(e, "%dms", &n):
		r.now = r.now.Add(time.Duration(n) * time.Millisecond)
		r.o.Tick(r.now)
	default:
		panic(e)
	}
	for x, ok := r.o.Next(); ok; x, ok = r.o.Next() {
		switch x.Action {
		case ListCandidates:
			r.said.WriteString(" list")
		case DialOffer:
			fmt.Fprintf(&r.said, " dial%d", x.Candidate)
			if x.Procs > 0 {
				fmt.Fprintf(&r.said, "(%d)", x.Procs)
			}
		case OfferLinked:
			r.said.WriteString(" linked")
		case OfferLost:
			fmt.Fprintf(&r.said, " lost(%d,%t)", len(r.o.Plan().FailedCandidates()), x.Final)
		}
	}
}

func scan(s, format string, n *int) bool {
	k, err := fmt.Sscanf(s, format, n)
	return k == 1 && err == nil
}

func TestHostOffer(t *testing.T) {
	for _, x := range []struct{ name, events, want string }{
		{"the first candidate works", "begin, ways 2, linked", "list dial0 linked"},
		{"the second works", "begin, ways 2, failed, linked", "list dial0 dial1 linked"},
		{"both are tried again after a pause", "begin, ways 2, failed, failed, 49ms, 1ms, linked", "list dial0 dial1 dial0 linked"},
		{"longer pauses", "begin, ways 1, failed, 50ms, failed, 99ms, 1ms, failed, 200ms", "list dial0 dial0 dial0 dial0"},
		{"no verdict is final", "begin, ways 1, unlike, 50ms, linked", "list dial0 dial0 linked"},
		{"it does not answer", "begin, ways 1, failed, 50ms, failed, 1000ms, failed, 9999ms, 1ms", "list dial0 dial0 lost(1,false) list"},
		{"it is lost once", "begin, ways 0, 10000ms, ways 0, 10000ms, ways 1, linked, ended, 250ms, ways 0", "list lost(0,false) list list dial0 linked list lost(0,false)"},
		{"its transports are drained", "begin, drained, 9999ms, 1ms, drained, 10000ms, ways 1, linked, ended, 250ms, drained, 10000ms, ways 0", "list list list dial0 linked list list lost(0,false)"},
		{"those of the host are drained", "begin, ways 2, busy, failed, 1000ms, 10000ms, ways 1, failed, 50ms, failed, 1000ms", "list dial0 dial1 list dial0 dial0 lost(1,false)"},
		{"it refuses the site", "begin, ways 2, failed, refused, 60000ms, procs 2", "list dial0 dial1 lost(1,true)"},
		{"a spawn takes the link", "begin, ways 1, linked, taken, ways 1, linked", "list dial0 linked list dial0 linked"},
		{"the link ends", "begin, ways 1, linked, ended, 249ms, 1ms, ways 1, linked", "list dial0 linked list dial0 linked"},
		{"the offer changes", "begin, ways 1, linked, procs 0, procs 2, ways 1, linked, procs 2", "list dial0 linked list dial0(2) linked"},
		{"the offer changes while it is dialled", "begin, ways 1, procs 2, linked, ways 1, linked", "list dial0 linked list dial0(2) linked"},
		{"before it is dialled again", "begin, ways 1, failed, procs 2, 50ms, linked", "list dial0 dial0(2) linked"},
		{"an older link is taken or ends meanwhile", "begin, ways 1, linked, procs 1, taken, ended, ways 1, taken, linked", "list dial0 linked list dial0(1) linked"},
		{"the offer changes and cannot be made", "begin, ways 1, linked, procs 2, ways 0, 9999ms, 1ms, ways 1, linked", "list dial0 linked list list dial0(2) linked"},
		{"then the older link ends", "begin, ways 1, linked, procs 2, ways 0, ended, 249ms, 1ms, ways 0", "list dial0 linked list list lost(0,false)"},
		{"or is taken", "begin, ways 1, linked, procs 2, ways 0, taken, ways 1, linked", "list dial0 linked list list dial0(2) linked"},
		{"or has ended before", "begin, ways 1, linked, procs 2, ended, ways 0", "list dial0 linked list lost(0,false)"},
		{"its part of the job is over", "begin, ways 1, linked, stop, ended, taken, procs 3, 60000ms", "list dial0 linked"},
	} {
		r := &offerRun{o: NewHostOffer(time.Second), now: time.Unix(100, 0)}
		for e := range strings.SplitSeq(x.events, ", ") {
			r.event(e)
		}
		if got := strings.TrimSpace(r.said.String()); got != x.want {
			t.Errorf("%s: %s\nwant %s", x.name, got, x.want)
		}
		if over := strings.Contains(x.events, "stop") || strings.Contains(x.events, "refused"); r.o.Over() != over {
			t.Errorf("%s: over is %t", x.name, r.o.Over())
		}
	}
}
