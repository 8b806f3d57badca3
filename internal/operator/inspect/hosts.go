package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
)

type hostCounts struct {
	links.HostCounts
	kinds map[kind]*links.LinkCount
}

type kind struct {
	state     links.State
	transport string
	plane     string
}

// count adds a pair; alike: both of its ends count the same bytes.
func (x *hostCounts) count(k kind, resumes int, l *wireup.LinkStats, alike bool) {
	c := x.kinds[k]
	if c == nil {
		c = &links.LinkCount{State: k.state, Transport: k.transport, Plane: k.plane}
		x.kinds[k] = c
	}
	c.Pairs++
	c.Resumes += resumes
	if (k.state == links.StateOpening || k.state == links.StateWaiting) && l.Messages > 0 {
		c.Waits++
	}
	if alike && (k.state == links.StateLinked || k.state == links.StateLost) {
		c.Counted++
		c.Sent += l.Sent
		c.Received += l.Received
	}
}

// countByHost adds up what the procs of each host of this node have counted of their links, by the
// other end's host.
func (c *Control) countByHost(stats []*wireup.Stats, known *estimates) (list []links.HostCounts) {
	world := c.Site.Routes.World
	all := make(map[[2]int]*hostCounts)
	for i, p := range c.Procs.All() {
		if stats[i] == nil {
			continue
		}
		from := int(world.Procs.At(p.Rank()).Host)
		for k := range stats[i].Links {
			l := &stats[i].Links[k]
			to := int(world.Procs.At(l.Peer).Host)
			x := all[[2]int{from, to}]
			if x == nil {
				x = &hostCounts{HostCounts: links.HostCounts{From: from, To: to}, kinds: make(map[kind]*links.LinkCount)}
				all[[2]int{from, to}] = x
			}
			x.Pairs++
			x.Messages += l.Messages
			x.Data += l.Data
			pair := direct.Pair{Local: p.Rank(), Peer: l.Peer}
			if rtt := cmp.Or(time.Duration(l.RTT), known.of(c, pair)); rtt > 0 && (x.RTT == 0 || rtt < x.RTT) {
				x.RTT = rtt
			}
			transport, plane, native := direct.TransportOf(c.Direct, pair)
			x.count(kind{c.Direct.State(pair, stats[i], l), transport, plane}, c.Direct.Resumes(pair), l, l.Counted && l.Pure && !native)
			x.Sent += l.Sent
			x.Received += l.Received
			if l.Compressed != nil {
				if x.Compressed == nil {
					x.Compressed = &wireup.CompressedBytes{}
				}
				x.Compressed.Add(l.Compressed)
			}
		}
	}
	for _, x := range all {
		for _, k := range x.kinds {
			x.Links = append(x.Links, *k)
		}
		slices.SortFunc(x.Links, func(a, b links.LinkCount) int {
			return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Transport, b.Transport), cmp.Compare(a.Plane, b.Plane))
		})
		list = append(list, x.HostCounts)
	}
	slices.SortFunc(list, func(a, b links.HostCounts) int { return cmp.Or(a.From-b.From, a.To-b.To) })
	return list
}

func (c *Control) describeLog(d *links.Node, r links.Request) {
	if !r.Log || c.Log == nil {
		return
	}
	for _, l := range c.Log() {
		d.Log = append(d.Log, links.LogLine{At: l.At, Level: l.Level.String(), From: l.From, Text: l.Text})
	}
}
