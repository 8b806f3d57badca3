package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/quantity"
)

// UnderWay describes bytes that one proc has sent another one, or with Hosts one host by its
// channel to another one, and that have not arrived, while all procs wait. With Procs it is the
// total for all procs of two hosts.
type UnderWay struct {
	From      int    `json:"from"` // ranks; with Hosts ranks of hosts
	To        int    `json:"to"`
	Hosts     bool   `json:"hosts,omitempty"` // From and To are hosts, linked by a channel
	Procs     bool   `json:"procs,omitempty"` // From and To are hosts, for bytes between their procs
	Bytes     uint64 `json:"bytes,omitempty"` // bytes of the link, headers included; 0: the link is still being made
	Transport string `json:"transport,omitempty"`
	Ended     bool   `json:"ended,omitempty"` // the link has ended at From, and To has not received the end
	Lost      bool   `json:"lost,omitempty"`  // the link has lost its connection and is being made again
}

// verdict says why no proc of a job goes on: it is no deadlock if messages are under way.
func verdict(j *links.Job) (d *Deadlock, stalled []UnderWay) {
	if d = findDeadlock(j); d == nil {
		return nil, nil
	}
	if stalled = underWay(j); len(stalled) > 0 {
		return nil, stalled
	}
	if hosts, more := LinksOfHosts(j); more { // more than the pairs that are reported
		d.UnreportedPairs = 0
		if stalled = betweenHosts(hosts, &d.UnreportedPairs); len(stalled) > 0 {
			return nil, stalled
		}
	}
	return d, nil
}

// underWay finds what was sent and has not arrived. The procs must have been waiting for some time,
// so that a moment between the answers of both ends makes no difference.
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
		if p.State == links.StateLost {
			list = append(list, UnderWay{From: p.A, To: p.B, Transport: p.Transport, Lost: true})
			continue
		}
		if i := halfEnded(p); i >= 0 && runs[p.A] && runs[p.B] {
			from, to := &p.Views[i], &p.Views[1-i]
			list = append(list, UnderWay{From: from.Local, To: to.Local, Transport: to.Transport, Ended: true})
		}
		for _, way := range []UnderWay{{From: p.A, To: p.B, Bytes: links.ValueOf(p.AToB.UnderWay)}, {From: p.B, To: p.A, Bytes: links.ValueOf(p.BToA.UnderWay)}} {
			if way.Transport = p.Transport; way.Bytes > 0 {
				list = append(list, way)
			}
		}
	}
	return append(list, onChannels(j)...)
}

func onChannels(j *links.Job) (list []UnderWay) {
	for i := range j.Channels {
		c := &j.Channels[i]
		x := UnderWay{From: c.From, To: c.To, Hosts: true, Bytes: links.ValueOf(c.UnderWay), Transport: c.Transport, Lost: c.State == links.StateLost}
		if x.Bytes > 0 || x.Lost {
			list = append(list, x)
		}
	}
	return list
}

// LinksOfHosts returns the links between hosts, and reports whether they are more than the pairs of
// procs that the nodes report one by one.
func LinksOfHosts(j *links.Job) (hosts []links.HostLinks, more bool) {
	told, all := 0, 0
	for i := range j.Pairs {
		if j.Pairs[i].State != links.StateUnused {
			told++
		}
	}
	hosts = j.BetweenHosts()
	for i := range hosts {
		all += hosts[i].Pairs()
	}
	return hosts, len(hosts) > 0 && (all > told || j.Left > 0)
}

// betweenHosts is underWay by hosts instead of pairs of procs. It adds to untold the number of
// links of which that is not known.
func betweenHosts(hosts []links.HostLinks, untold *int) (list []UnderWay) {
	for i := range hosts {
		h := &hosts[i]
		*untold += h.Unknown
		for _, way := range []UnderWay{{From: h.A, To: h.B, Bytes: h.AToB}, {From: h.B, To: h.A, Bytes: h.BToA}} {
			if way.Procs = true; way.Bytes > 0 {
				list = append(list, way)
			}
		}
		for _, way := range []struct{ from, to, n int }{{h.A, h.B, h.AWaits}, {h.B, h.A, h.BWaits}} {
			if way.n > 0 {
				list = append(list, UnderWay{From: way.from, To: way.to, Procs: true})
			}
		}
		for _, l := range h.Links {
			if l.State == links.StateLost {
				list = append(list, UnderWay{From: h.A, To: h.B, Procs: true, Transport: l.Transport, Lost: true})
			}
		}
	}
	return list
}

// halfEnded returns the view of the end where the link has ended while the other end still has it,
// or -1 if it is not so.
func halfEnded(p *links.Pair) int {
	if len(p.Views) != 2 {
		return -1
	}
	for i := range p.Views {
		if p.Views[i].State == links.StateEnded && p.Views[1-i].State == links.StateLinked {
			return i
		}
	}
	return -1
}

func underWayInShort(j *Job) string {
	var bytes uint64
	var still time.Duration
	moving, known, unknown := 0, 0, 0
	add := func(d time.Duration, n ...*uint64) {
		still = max(still, d)
		sum, ok := uint64(0), true
		for _, x := range n {
			sum, ok = sum+links.ValueOf(x), ok && x != nil
		}
		switch bytes += sum; {
		case !ok:
			unknown++
		case sum > 0:
			moving++
			fallthrough
		default:
			known++
		}
	}
	hosts, more := LinksOfHosts(&j.Job)
	for i := range j.Pairs {
		if p := &j.Pairs[i]; !more && (p.State == links.StateLinked || p.State == links.StateLost) {
			add(max(p.AToB.NoArrivalFor, p.BToA.NoArrivalFor), p.AToB.UnderWay, p.BToA.UnderWay)
		}
	}
	for i := range hosts {
		if h := &hosts[i]; more {
			if known += h.Known; h.AToB+h.BToA > 0 {
				moving++
			}
			bytes, unknown = bytes+h.AToB+h.BToA, unknown+h.Unknown
		}
	}
	for i := range j.Channels {
		if c := &j.Channels[i]; c.State != links.StateEnded {
			add(c.NoArrivalFor, c.UnderWay)
		}
	}
	if !more {
		unknown += j.Left
	}
	var s []string
	if moving > 0 && more {
		s = append(s, fmt.Sprintf("%s on links and channels, counted by hosts", quantity.Bytes(bytes)))
	} else if moving > 0 {
		s = append(s, fmt.Sprintf("%s on %d links and channels", quantity.Bytes(bytes), moving))
	}
	if moving > 0 {
		if still >= stalledAfter { // with -watch
			s = append(s, fmt.Sprintf("on one of them none has arrived for %s", ago(still)))
		}
	} else if known > 0 {
		s = append(s, "nothing")
	}
	if unknown > 0 {
		s = append(s, fmt.Sprintf("unknown of %d", unknown))
	}
	return strings.Join(s, ", ")
}

// mostStalled is how many entries of a list of what is under way are shown as text.
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

func (u UnderWay) String() string {
	what := "rank"
	switch {
	case u.Hosts:
		what = "host"
	case u.Procs:
		what = "procs of host"
	}
	from, to := fmt.Sprintf("%s %d", what, u.From), fmt.Sprintf("%s %d", what, u.To)
	switch {
	case u.Ended:
		return fmt.Sprintf("the link of %s to %s has ended%s, and %s does not know it: its plugin or the network stalls", from, to, in(u.Transport), to)
	case u.Lost:
		return fmt.Sprintf("the link of %s to %s is lost%s and is being made again", from, to, in(u.Transport))
	case u.Bytes == 0:
		return fmt.Sprintf("%s has sent messages to %s, and their link is still being made%s", from, to, in(u.Transport))
	}
	return fmt.Sprintf("%s has sent %s to %s that have not arrived%s: the link or its plugin stalls", from, quantity.Bytes(u.Bytes), to, in(u.Transport))
}

func in(transport string) string {
	if transport == "" {
		return ""
	}
	return " (" + transport + ")"
}
