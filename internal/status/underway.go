package status

import (
	"fmt"
	"io"

	"github.com/openimpi/impi/internal/links"
)

// UnderWay is what one proc has sent another one and that has not arrived, while all procs wait.
type UnderWay struct {
	From      int    `json:"from"` // ranks
	To        int    `json:"to"`
	Bytes     uint64 `json:"bytes,omitempty"` // of the link, headers included; 0: the link is still being made
	Transport string `json:"transport,omitempty"`
	Ended     bool   `json:"ended,omitempty"` // the link has ended at From, and To does not know it
}

// verdict says why no proc of a job goes on: it is no deadlock if messages are under way.
func verdict(j *links.Job) (d *Deadlock, stalled []UnderWay) {
	if d = findDeadlock(j); d == nil {
		return nil, nil
	}
	if stalled = underWay(j); len(stalled) > 0 {
		return nil, stalled
	}
	return d, nil
}

// underWay finds what was sent and has not arrived. The procs must have waited: then a moment
// between the answers of both ends makes no difference.
func underWay(j *links.Job) (list []UnderWay) {
	runs := make(map[int]bool)
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			x := &j.Sites[i].Ranks[k]
			runs[x.Rank] = x.State == links.ProcRunning
		}
	}
	for i := range j.Pairs {
		p := &j.Pairs[i]
		if p.State == links.StateOpening || p.State == links.StateWaiting {
			for _, v := range p.Views {
				if v.Traffic != nil && v.Traffic.Messages > 0 {
					list = append(list, UnderWay{From: v.Local, To: v.Peer, Transport: v.Transport})
				}
			}
			continue
		}
		if len(p.Views) != 2 {
			continue
		}
		if i := halfEnded(p); i >= 0 && runs[p.A] && runs[p.B] {
			from, to := &p.Views[i], &p.Views[1-i]
			list = append(list, UnderWay{From: from.Local, To: to.Local, Transport: to.Transport, Ended: true})
		}
		if !sameBytes(&p.Views[0], &p.Views[1]) {
			continue
		}
		for k := range p.Views {
			from, to := &p.Views[k], &p.Views[1-k]
			if sent, received := *from.Traffic.Sent, *to.Traffic.Received; sent > received {
				list = append(list, UnderWay{from.Local, to.Local, sent - received, from.Transport, false})
			}
		}
	}
	return list
}

// halfEnded returns the view of the end where the link has ended, if it is still there at the other
// one; -1: that is not so.
func halfEnded(p *links.Pair) int {
	for i := range p.Views {
		if p.Views[i].State == links.StateEnded && p.Views[1-i].State == links.StateLinked {
			return i
		}
	}
	return -1
}

// sameBytes reports whether both ends count the same bytes. Ends of different data planes do not:
// a ring has counted the nodes' greeting, too.
func sameBytes(a, b *links.View) bool {
	counts := func(v *links.View) bool {
		return v.State == links.StateLinked && !v.Native && v.Traffic != nil && v.Traffic.Sent != nil && v.Traffic.Received != nil
	}
	return counts(a) && counts(b) && a.Local == b.Peer && b.Local == a.Peer && a.Transport == b.Transport && a.Plane == b.Plane
}

// mostStalled is how many of these are shown as text.
const mostStalled = 10

func writeUnderWay(w io.Writer, list []UnderWay) {
	if len(list) == 0 {
		return
	}
	fmt.Fprint(w, "\n  all procs wait, but this is no deadlock of the program: messages are under way\n")
	for _, u := range list[:min(len(list), mostStalled)] {
		fmt.Fprintf(w, "    %s\n", oneLine(u.String()))
	}
	if n := len(list) - mostStalled; n > 0 {
		fmt.Fprintf(w, "    and %d more: -json has all\n", n)
	}
}

// String says it to people.
func (u UnderWay) String() string {
	switch {
	case u.Ended:
		return fmt.Sprintf("the link of rank %d to rank %d has ended%s, and rank %d does not know it: its plugin or the network stalls", u.From, u.To, in(u.Transport), u.To)
	case u.Bytes == 0:
		return fmt.Sprintf("rank %d has sent messages to rank %d, and their link is still being made%s", u.From, u.To, in(u.Transport))
	}
	return fmt.Sprintf("rank %d has sent %d bytes to rank %d that have not arrived%s: the link or its plugin stalls", u.From, u.Bytes, u.To, in(u.Transport))
}

func in(transport string) string {
	if transport == "" {
		return ""
	}
	return " (" + transport + ")"
}
