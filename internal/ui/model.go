package ui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

// mostRanks is the largest number of procs for which a job's matrix is by rank. That of a larger
// job is by host, as is that of one whose pairs the nodes do not tell in full.
const mostRanks = 128

// mostCells bounds a matrix. Cells with the most bytes are kept.
const mostCells = 1 << 16

// model is what the page shows of all jobs, as JSON.
type model struct {
	Schema  int       `json:"schema"`
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	Jobs    []job     `json:"jobs"`
}

type job struct {
	Name     string   `json:"name"`
	ID       string   `json:"id"`
	Sites    []site   `json:"sites"`
	Ranks    []rank   `json:"ranks"` // by rank
	Matrix   matrix   `json:"matrix"`
	Channels int      `json:"channels"` // between hosts
	Servers  []server `json:"servers"`
	DrawBy   string   `json:"draw_by"`    // "site", or "host" of a job with few hosts: what a box of the map stands for
	Paths    []path   `json:"paths"`      // between sites
	HostWays []path   `json:"host_paths"` // between hosts; of a large job only those that do not work
	Deadlock *stuck   `json:"deadlock,omitempty"`
	Log      []line   `json:"log"` // oldest first
	Worlds   int      `json:"worlds"`
	Problems []string `json:"problems"` // nodes that did not answer, and why
	Spares   []spare  `json:"spares"`
}

type spare struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Procs int    `json:"procs"` // number of procs that were spawned there
}

type site struct {
	Name    string    `json:"name"`
	Own     bool      `json:"own"`
	Phase   string    `json:"phase"`
	Problem string    `json:"problem,omitempty"`
	Hosts   []machine `json:"hosts"`
	Plugins []plugin  `json:"plugins"`
}

type machine struct {
	Rank    int    `json:"rank"` // IMPI host rank
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"`
}

type plugin struct {
	Name  string `json:"name"`
	Host  string `json:"host,omitempty"`
	State string `json:"state"`
	Links int    `json:"links"`
	Note  string `json:"note,omitempty"` // what is wrong with it
}

type rank struct {
	Rank     int     `json:"rank"` // -1: the proc has none yet
	PID      int     `json:"pid"`
	Site     int     `json:"site"` // index of the site
	Host     int     `json:"host"` // IMPI host rank
	State    string  `json:"state"`
	Does     string  `json:"does"`
	Blocked  float64 `json:"blocked_s"`
	Messages uint64  `json:"messages"` // messages sent
	Sent     uint64  `json:"sent"`     // bytes sent
	Received uint64  `json:"received"`
	Slept    float64 `json:"slept_s"`
}

type matrix struct {
	By      string `json:"by"` // "rank" or "host"
	Size    int    `json:"size"`
	Cells   []cell `json:"cells"`
	LeftOut int    `json:"left_out"` // pairs of procs of which nothing is known
}

type cell struct {
	From      int     `json:"from"`
	To        int     `json:"to"`
	Messages  uint64  `json:"messages"`
	Bytes     uint64  `json:"bytes"`
	HalfTrip  float64 `json:"half_trip_us,omitempty"` // estimate of the kernel or the transport; of two hosts the shortest; 0: not known
	Transport string  `json:"transport,omitempty"`    // transport of pairs of procs
	State     string  `json:"state,omitempty"`
	Resumes   int     `json:"resumes,omitempty"`
	Pairs     int     `json:"pairs,omitempty"` // pairs of procs, between hosts
}

type stuck struct {
	For   float64 `json:"for_s"`
	Cycle []int   `json:"cycle,omitempty"`

	Jobs   []string `json:"jobs,omitempty"`   // several jobs that wait for each other
	Across string   `json:"across,omitempty"` // the cycle over their worlds
}

type line struct {
	At    time.Time `json:"at"`
	Level string    `json:"level"`
	From  string    `json:"from"`
	Text  string    `json:"text"`
	Host  string    `json:"host,omitempty"`
	Site  string    `json:"site,omitempty"`
	Event bool      `json:"event"` // a fault, or the end of a fault: shown in the timeline
}

func modelOf(jobs []status.Job, version string, now time.Time) *model {
	m := &model{Schema: 1, Version: version, At: now, Jobs: []job{}}
	for i := range jobs {
		m.Jobs = append(m.Jobs, jobOf(&jobs[i], now))
	}
	return m
}

func jobOf(s *status.Job, now time.Time) job {
	j := job{Name: s.Name, ID: s.ID, Ranks: []rank{}, Log: []line{}, Problems: []string{}, Spares: []spare{}, Channels: len(s.Channels), Worlds: len(s.WorldLinks)}
	first := 0 // host rank of a site's first host
	procs := 0
	for i := range s.Sites {
		p := &s.Sites[i]
		j.Sites = append(j.Sites, siteOf(p, first, now))
		for k := range p.Ranks {
			j.Ranks = append(j.Ranks, rankOf(&p.Ranks[k], i))
		}
		if p.Problem != "" {
			j.Problems = append(j.Problems, "site "+p.Label()+": "+p.Problem)
		}
		if p.Lost != nil {
			j.Problems = append(j.Problems, "site "+p.Label()+" is "+p.Lost.Since(now))
		}
		first += len(p.Hosts)
		procs += p.Procs
	}
	slices.SortFunc(j.Ranks, func(a, b rank) int { return cmp.Or(a.Rank-b.Rank, a.PID-b.PID) })
	_, more := status.LinksOfHosts(&s.Job)
	if j.Matrix = byRank(s, procs); procs > mostRanks || more && first > 1 {
		j.Matrix = byHost(s, first)
	}
	j.Servers = serversOf(s)
	for _, x := range s.Spares {
		j.Spares = append(j.Spares, spare{x.Name, x.State, x.Procs})
	}
	j.Paths, j.HostWays = pathsOf(s)
	if j.DrawBy = "site"; first > len(s.Sites) && first <= mostHosts {
		j.DrawBy = "host"
	}
	if d := s.Deadlock; d != nil {
		j.Deadlock = &stuck{For: d.For.Seconds(), Cycle: d.Cycle, Jobs: d.Jobs, Across: d.AcrossText(" waits for ")}
	}
	for _, l := range s.Log {
		j.Log = append(j.Log, line{At: l.At, Level: l.Level, From: l.From, Text: l.Text, Host: l.Host, Site: l.Site, Event: l.IsEvent()})
	}
	return j
}

func siteOf(p *links.SiteState, first int, now time.Time) site {
	x := site{Name: p.Label(), Own: p.Own, Phase: cmp.Or(string(p.State), p.NotAsked), Problem: p.Problem, Hosts: []machine{}, Plugins: []plugin{}}
	for i, address := range p.Hosts {
		x.Hosts = append(x.Hosts, machine{Rank: first + i, Name: address, Problem: p.HostProblem(i)})
		if p.Lost != nil {
			x.Problem = p.Lost.Since(now)
			x.Hosts[i].Problem = x.Problem
		}
	}
	for _, t := range p.Transports {
		note := cmp.Or(t.Error, t.Problem)
		if t.Starts > 1 && note != "" {
			note = fmt.Sprintf("started %d times; its last fault: %s", t.Starts, note)
		}
		x.Plugins = append(x.Plugins, plugin{Name: t.Name, Host: t.Host, State: t.State, Links: t.Links, Note: note})
	}
	return x
}

func rankOf(p *links.Proc, site int) rank {
	r := rank{Rank: p.Rank, PID: p.PID, Site: site, Host: p.Host}
	r.State, r.Does = status.Describe(p)
	if p.Blocked != nil {
		r.Blocked = p.Blocked.Time.Seconds()
	}
	if c := p.Counts; c != nil {
		r.Messages, r.Sent, r.Received, r.Slept = c.Messages, c.Sent, c.Received, c.Slept.Seconds()
	}
	return r
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func byRank(s *status.Job, procs int) matrix {
	m := matrix{By: "rank", Size: procs, Cells: []cell{}, LeftOut: s.Left}
	for i := range s.Pairs {
		p := &s.Pairs[i]
		half := 0.0
		if p.Speed != nil {
			half = microseconds(p.Speed.HalfTrip)
		}
		for _, way := range []struct {
			from, to int
			links.Count
		}{{p.A, p.B, p.AToB}, {p.B, p.A, p.BToA}} {
			c := cell{From: way.from, To: way.to, HalfTrip: half, Transport: p.Transport, State: string(p.State), Resumes: p.Resumes}
			if way.Messages != nil {
				c.Messages = *way.Messages
			}
			if way.Data != nil {
				c.Bytes = *way.Data
			} else if way.Bytes != nil { // use what the other end has received
				c.Bytes = *way.Bytes
			}
			m.Cells = append(m.Cells, c)
		}
	}
	return m.bounded()
}

// byHost makes a matrix of what each host has counted. For a host that did not answer, what others
// have received from it stands in for what it has sent.
func byHost(s *status.Job, hosts int) matrix {
	m := matrix{By: "host", Size: hosts}
	cells := make(map[[2]int]cell)
	for _, x := range s.ByHost {
		if x.From == x.To { // both procs count each pair
			x.Pairs = (x.Pairs + 1) / 2
		}
		cells[[2]int{x.From, x.To}] = cell{From: x.From, To: x.To, Messages: x.Messages, Bytes: cmp.Or(x.Data, x.Sent), Pairs: x.Pairs, HalfTrip: microseconds(x.RTT / 2)}
	}
	for _, x := range s.ByHost {
		if _, told := cells[[2]int{x.To, x.From}]; !told {
			cells[[2]int{x.To, x.From}] = cell{From: x.To, To: x.From, Bytes: x.Received, Pairs: x.Pairs, HalfTrip: microseconds(x.RTT / 2)}
		}
	}
	m.Cells = slices.AppendSeq(make([]cell, 0, len(cells)), maps.Values(cells))
	slices.SortFunc(m.Cells, func(a, b cell) int { return cmp.Or(a.From-b.From, a.To-b.To) })
	return m.bounded()
}

func (m matrix) bounded() matrix {
	if over := len(m.Cells) - mostCells; over > 0 {
		slices.SortFunc(m.Cells, func(a, b cell) int { return cmp.Compare(b.Bytes, a.Bytes) })
		m.LeftOut += over
		m.Cells = m.Cells[:mostCells]
	}
	return m
}
