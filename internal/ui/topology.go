package ui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

// mostHosts is the largest number of hosts for which the map draws the paths between hosts instead
// of those between sites.
const mostHosts = 8

// mostBroken is the maximum number of broken paths between hosts that are shown of a job with more
// than mostHosts hosts; working ones are not shown of it.
const mostBroken = 64

const mostNotes = 8

// The states of a path, the worst first. A path has the worst state of its links and channels.
const (
	pathLost    = "lost"    // a link or channel has lost its connection and is being made again
	pathStalled = "stalled" // bytes are under way on a link or channel and do not arrive
	pathOpening = "opening" // a link or channel is being made
	pathLinked  = "linked"
	pathEnded   = "ended"
	pathUntold  = "not told" // neither end answers
)

var pathStates = []string{pathLost, pathStalled, pathOpening, pathLinked, pathEnded, pathUntold}

// path is all that links two sites, or two hosts. The first of two values is for the direction from
// A to B.
type path struct {
	A        int       `json:"a"` // indices of sites, or ranks of hosts; A <= B
	B        int       `json:"b"`
	State    string    `json:"state"`
	Links    []linkSum `json:"links"`
	Messages [2]uint64 `json:"messages"`
	Bytes    [2]uint64 `json:"bytes"`     // bytes of data
	UnderWay [2]uint64 `json:"under_way"` // bytes of links and channels that are under way
	Unknown  int       `json:"unknown"`   // links and channels for which UnderWay is not known
	Still    float64   `json:"still_s"`   // maximum time for which bytes under way have stood still
	Notes    []string  `json:"notes"`     // why channels were lost
}

// linkSum counts links that are alike.
type linkSum struct {
	What    string `json:"what"`  // the transport, or "agents"
	State   string `json:"state"` // state that the path would have with only these
	Channel bool   `json:"channel,omitempty"`
	N       int    `json:"n"`
	Resumes int    `json:"resumes,omitempty"`
}

// server is the job's server, as the heads of sites see it.
type server struct {
	Address string       `json:"address"`
	Where   string       `json:"where,omitempty"` // what runs it, if that is known
	Sites   []serverLink `json:"sites"`
}

type serverLink struct {
	Site  int       `json:"site"`  // index
	State string    `json:"state"` // linked; lost: it is dialled again; ended: the site continues without it
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
}

func serversOf(s *status.Job) []server {
	list := []server{}
	for i := range s.Sites {
		x := s.Sites[i].Server
		if x == nil {
			continue
		}
		k := slices.IndexFunc(list, func(y server) bool { return y.Address == x.Address })
		if k < 0 {
			list = append(list, server{Address: x.Address})
			k = len(list) - 1
		}
		switch {
		case x.Embedded:
			list[k].Where = "in the node of site " + s.Sites[i].Label()
		case x.Ours && list[k].Where == "":
			list[k].Where = "in a node or launcher of the job"
		}
		l := serverLink{Site: i, State: pathLinked, Why: x.Why}
		if !x.DisconnectedSince.IsZero() {
			l.State, l.Since = pathLost, x.DisconnectedSince
		}
		if !x.Lost.IsZero() {
			l.State, l.Since = pathEnded, x.Lost
		}
		list[k].Sites = append(list[k].Sites, l)
	}
	return list
}

type topology struct {
	job   *status.Job
	site  []int // site of each host
	procs map[int]*links.Proc
	hosts map[[2]int]*path // paths by their hosts
	told  map[[2]int]bool  // pairs of hosts of which all links are counted
	sums  bool             // the bytes under way are taken from these counts, as more pairs exist than are reported
}

// pathsOf returns the paths between sites, and those between hosts that are drawn or do not work.
func pathsOf(s *status.Job) (sites, hosts []path) {
	t := &topology{job: s, procs: make(map[int]*links.Proc), hosts: make(map[[2]int]*path), told: make(map[[2]int]bool)}
	for i := range s.Sites {
		for range s.Sites[i].Hosts {
			t.site = append(t.site, i)
		}
		for k := range s.Sites[i].Ranks {
			t.procs[s.Sites[i].Ranks[k].Rank] = &s.Sites[i].Ranks[k]
		}
	}
	t.counts()
	t.underWay()
	for i := range s.Pairs {
		t.pair(&s.Pairs[i])
	}
	t.channels()
	sites = t.fold() // before list, which settles the paths that fold sums up
	return sites, t.list()
}

// between returns the path between two hosts, or nil if there are no such hosts. back means that
// the first host is the path's B.
func (t *topology) between(a, b int) (p *path, back bool) {
	if min(a, b) < 0 || max(a, b) >= len(t.site) {
		return nil, false
	}
	x := [2]int{min(a, b), max(a, b)}
	if t.hosts[x] == nil {
		t.hosts[x] = &path{A: x[0], B: x[1]}
	}
	return t.hosts[x], a > b
}

func (p *path) add(l linkSum) {
	if l.N <= 0 {
		return
	}
	same := func(x linkSum) bool { return x.What == l.What && x.State == l.State && x.Channel == l.Channel }
	if i := slices.IndexFunc(p.Links, same); i >= 0 {
		p.Links[i].N += l.N
		p.Links[i].Resumes += l.Resumes
		return
	}
	p.Links = append(p.Links, l)
}

func kindOf(state links.State, transport string) linkSum {
	switch state {
	case links.StateAgents:
		return linkSum{What: "agents", State: pathLinked}
	case links.StateLost:
		return linkSum{What: transport, State: pathLost}
	case links.StateEnded:
		return linkSum{What: transport, State: pathEnded}
	case links.StateLinked:
		return linkSum{What: transport, State: pathLinked}
	case links.StateOpening, links.StateWaiting, links.StateUnused:
	}
	return linkSum{What: transport, State: pathOpening}
}

// counts takes what hosts have counted of all their procs. Both count a link: of two that differ,
// the one that has lost more of them is believed. What a host does not tell was counted by the one
// that received it.
func (t *topology) counts() {
	all := make(map[[2]int]*links.HostCounts)
	for i := range t.job.ByHost {
		x := &t.job.ByHost[i]
		all[[2]int{x.From, x.To}] = x
	}
	lost := func(x *links.HostCounts) (n int) {
		for _, l := range x.Links {
			if l.State == links.StateLost {
				n += l.Pairs
			}
		}
		return n
	}
	for way, x := range all {
		p, back := t.between(way[0], way[1])
		if p == nil {
			continue
		}
		there, here := 0, 1
		if back {
			there, here = here, there
		}
		p.Messages[there] += x.Messages
		p.Bytes[there] += cmp.Or(x.Data, x.Sent)
		other := all[[2]int{way[1], way[0]}]
		if other == nil {
			p.Bytes[here] += x.Received
		} else if n, m := lost(x), lost(other); way[0] != way[1] && (m > n || m == n && back) {
			continue
		}
		for _, l := range x.Links {
			if l.State == links.StateUnused {
				continue
			}
			k := kindOf(l.State, l.Transport)
			if k.N, k.Resumes = l.Pairs, l.Resumes; way[0] == way[1] { // both procs counted each pair
				k.N, k.Resumes = (k.N+1)/2, (k.Resumes+1)/2
			}
			p.add(k)
		}
		t.told[[2]int{p.A, p.B}] = len(x.Links) > 0
	}
}

// underWay takes what is under way between hosts, if the nodes do not tell of each pair.
func (t *topology) underWay() {
	hosts, more := status.LinksOfHosts(&t.job.Job)
	t.sums = more
	for i := range hosts {
		h := &hosts[i]
		p, back := t.between(h.A, h.B)
		if !more || p == nil || !t.told[[2]int{p.A, p.B}] {
			continue
		}
		ways := [2]uint64{h.AToB, h.BToA}
		if back {
			ways[0], ways[1] = ways[1], ways[0]
		}
		p.UnderWay[0] += ways[0]
		p.UnderWay[1] += ways[1]
		p.Unknown -= h.Known // list adds all
	}
}

func (t *topology) pair(x *links.Pair) {
	if x.State == links.StateUnused || len(x.Views) == 0 {
		return
	}
	a, b := x.Views[0].LocalHost, x.Views[0].PeerHost
	if x.Views[0].Local != x.A {
		a, b = b, a
	}
	p, back := t.between(a, b)
	if p == nil {
		return
	}
	there, here := x.AToB, x.BToA
	to, from := t.procs[x.B], t.procs[x.A]
	if back {
		there, here, to, from = here, there, from, to
	}
	whole := t.told[[2]int{p.A, p.B}]
	if !whole {
		k := kindOf(x.State, x.Transport)
		k.N, k.Resumes = 1, x.Resumes
		p.add(k)
	}
	for i, way := range []struct {
		links.Count
		to *links.Proc
	}{{there, to}, {here, from}} {
		if !whole && way.Messages != nil {
			p.Messages[i] += *way.Messages
		}
		if bytes := cmp.Or(way.Data, way.Bytes); !whole && bytes != nil {
			p.Bytes[i] += *bytes
		}
		if way.UnderWay != nil {
			if !whole || !t.sums {
				p.UnderWay[i] += *way.UnderWay
			}
			if status.Stalls(way.NoArrivalFor, way.to) {
				p.stalls(way.NoArrivalFor)
			}
		}
	}
	if (there.UnderWay != nil || here.UnderWay != nil) && !(whole && t.sums) {
		p.Unknown-- // list adds all
	}
}

func (p *path) stalls(d time.Duration) { p.Still = max(p.Still, d.Seconds()) }

func (t *topology) channels() {
	ends := make(map[[2]int][]*links.Channel)
	for i := range t.job.Channels {
		c := &t.job.Channels[i]
		x := [2]int{min(c.From, c.To), max(c.From, c.To)}
		ends[x] = append(ends[x], c)
	}
	for _, both := range ends {
		p, _ := t.between(both[0].From, both[0].To)
		if p == nil {
			continue
		}
		k, known := linkSum{}, true
		for _, c := range both {
			x := kindOf(c.State, c.Transport)
			if k.State == "" || slices.Index(pathStates, x.State) < slices.Index(pathStates, k.State) {
				k = x
			}
			k.Resumes = max(k.Resumes, c.Resumes)
			if c.State == links.StateLost && c.Lost != "" {
				p.Notes = append(p.Notes, fmt.Sprintf("channel of host %d to host %d: %s", c.From, c.To, c.Lost))
			}
			if c.UnderWay == nil {
				known = false
				continue
			}
			i := 0
			if c.From != p.A {
				i = 1
			}
			p.UnderWay[i] += *c.UnderWay
			if status.Stalls(c.NoArrivalFor, nil) {
				p.stalls(c.NoArrivalFor)
			}
		}
		k.Channel, k.N = true, 1
		p.add(k)
		if known && len(both) > 1 {
			p.Unknown--
		}
	}
}

func (p *path) settle() {
	p.State = pathUntold
	for _, l := range p.Links {
		if slices.Index(pathStates, l.State) < slices.Index(pathStates, p.State) {
			p.State = l.State
		}
		if (l.State == pathLinked || l.State == pathLost) && l.What != "agents" { // bytes that go through agents are counted in the agents' channel
			p.Unknown += l.N
		}
	}
	if p.Still > 0 && p.State != pathLost {
		p.State = pathStalled
	}
	p.Unknown = max(0, p.Unknown)
	slices.SortFunc(p.Links, func(a, b linkSum) int {
		return cmp.Or(slices.Index(pathStates, a.State)-slices.Index(pathStates, b.State), b.N-a.N, cmp.Compare(a.What, b.What))
	})
	if p.Links == nil {
		p.Links = []linkSum{}
	}
	if p.Notes == nil {
		p.Notes = []string{}
	}
}

func order(a, b path) int { return cmp.Or(a.A-b.A, a.B-b.B) }

func (t *topology) list() (list []path) {
	list = []path{}
	for _, p := range t.hosts {
		p.settle()
		if len(t.site) <= mostHosts || p.State == pathLost || p.State == pathStalled {
			list = append(list, *p)
		}
	}
	slices.SortFunc(list, order)
	if len(t.site) > mostHosts {
		list = list[:min(len(list), mostBroken)]
	}
	return list
}

// fold adds up the paths between hosts by sites.
func (t *topology) fold() (list []path) {
	sites := make(map[[2]int]*path)
	for _, x := range t.hosts {
		a, b := t.site[x.A], t.site[x.B] // hosts are numbered by sites
		p := sites[[2]int{a, b}]
		if p == nil {
			p = &path{A: a, B: b}
			sites[[2]int{a, b}] = p
		}
		for _, l := range x.Links {
			p.add(l)
		}
		for i := range 2 {
			p.Messages[i] += x.Messages[i]
			p.Bytes[i] += x.Bytes[i]
			p.UnderWay[i] += x.UnderWay[i]
		}
		p.Unknown += x.Unknown
		p.Still = max(p.Still, x.Still)
		p.Notes = append(p.Notes, x.Notes...)
	}
	list = []path{}
	for _, p := range sites {
		p.settle()
		slices.Sort(p.Notes)
		p.Notes = p.Notes[:min(len(p.Notes), mostNotes)]
		list = append(list, *p)
	}
	slices.SortFunc(list, order)
	return list
}
