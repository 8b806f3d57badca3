package links

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
)

// Schema is the version of a Report as JSON. Adding fields does not change it.
const Schema = 1

// Report is the output of impi-node links.
type Report struct {
	Schema int   `json:"schema"`
	Jobs   []Job `json:"jobs"`
}

// Job describes a job as the nodes that were asked report it.
type Job struct {
	Name       string      `json:"name"`
	ID         string      `json:"id,omitempty"` // empty before the job's sites have met
	Sites      []SiteState `json:"sites"`        // by client rank
	Pairs      []Pair      `json:"pairs"`        // of ranks, the lower one first
	Unused     int         `json:"unused_pairs"` // pairs left out because nothing was sent between them
	Left       int         `json:"left_out_pairs"`
	Channels   []Channel   `json:"channels"` // between hosts
	World      string      `json:"world,omitempty"`
	Ports      int         `json:"ports,omitempty"`
	WorldLinks []WorldLink `json:"other_worlds,omitempty"` // links to procs of other jobs

	Spares []Spare `json:"spares,omitempty"`

	Log    []LogLine    `json:"log,omitempty"` // of nodes of the site that was asked, by time
	ByHost []HostCounts `json:"by_host,omitempty"`
}

// SiteState is a site of a job, and whether its node answered. If each host has a node of its own,
// it stands for all of them: PID and Parent are those of a node that runs here, and State is that
// of the node that is least far, or that ends.
type SiteState struct {
	Site
	Here       bool        `json:"here"` // a node of it runs on this machine, under this user
	PID        int         `json:"pid,omitempty"`
	Parent     int         `json:"parent,omitempty"` // process that started the node
	State      NodeState   `json:"phase,omitempty"`
	Waits      string      `json:"waits_for,omitempty"`   // whom it waits for while it starts
	Problem    string      `json:"problem,omitempty"`     // why its node did not answer; empty if it did
	NotAsked   string      `json:"not_asked,omitempty"`   // why its node could not be asked from here; empty if it was
	Since      time.Time   `json:"silent_since,omitzero"` // when it first did not answer, as far as is known
	Lost       *Loss       `json:"lost,omitempty"`        // the job continues without the site
	Agents     []Host      `json:"agents,omitempty"`
	Ranks      []Proc      `json:"ranks,omitempty"`
	Transports []Transport `json:"transports,omitempty"`
	Nodes      []HostNode  `json:"nodes,omitempty"` // of its hosts, if each has one of its own
	Server     *JobServer  `json:"server,omitempty"`

	pids map[int]int // of ranks whose node does not answer, as it has said before
}

// Answered reports whether the site's nodes have answered.
func (p *SiteState) Answered() bool { return p.Problem == "" && p.NotAsked == "" }

// HostNode is the node of one host of a site, and whether it answered.
type HostNode struct {
	Host    string    `json:"host"`   // address
	Number  int       `json:"number"` // index among the site's hosts
	Here    bool      `json:"here"`   // it was asked directly; the others were asked by it
	PID     int       `json:"pid,omitempty"`
	Parent  int       `json:"parent,omitempty"`
	State   NodeState `json:"phase,omitempty"`
	Problem string    `json:"problem,omitempty"` // why it did not answer; empty if it did
	Lost    *Loss     `json:"lost,omitempty"`    // the job continues without the host

	Since time.Time `json:"silent_since,omitzero"` // when it first did not answer, as far as is known
}

// Pair is two procs and the link between them.
type Pair struct {
	A           int       `json:"a"` // ranks
	B           int       `json:"b"`
	SiteA       string    `json:"site_a"`
	SiteB       string    `json:"site_b"`
	State       State     `json:"state"`
	Transport   string    `json:"transport,omitempty"`
	Plane       string    `json:"data_plane,omitempty"`
	PlaneReason string    `json:"data_plane_reason,omitempty"`
	Dialler     int       `json:"dialler"` // rank whose node dialled; -1: none, or unknown
	Since       time.Time `json:"since,omitzero"`
	Why         string    `json:"why"` // why this transport is used, or none
	AToB        Count     `json:"a_to_b"`
	BToA        Count     `json:"b_to_a"`
	Speed       *Speed    `json:"speed,omitempty"`
	Resumes     int       `json:"resumes"`
	Views       []View    `json:"views"` // of the ends whose node answered
	Faster      []string  `json:"faster,omitempty"`
}

// Count is the traffic in one direction. nil means unknown.
type Count struct {
	Messages *uint64 `json:"messages,omitempty"`
	Bytes    *uint64 `json:"bytes,omitempty"` // of the direct link, headers included
	Data     *uint64 `json:"data,omitempty"`  // bytes of data in the messages, whatever way they went

	UnderWay     *uint64       `json:"under_way_bytes,omitempty"` // of the direct link, sent and not yet received there
	NoArrivalFor time.Duration `json:"still_ns,omitempty"`        // time in which none of them has arrived, as far as observed
}

// The ways in which a speed was found.
const (
	HowProbe  = "probe"  // the nodes have just measured it, on a separate link
	HowKernel = "kernel" // half of TCP's estimate of the round trip, or of the transport's; no rate
	// HowChannel is HowKernel for the agents' connection. It does not include the links
	// between the procs and their agents.
	HowChannel = "channel"
)

// Speed is how fast a pair's link is.
type Speed struct {
	How string `json:"how"`
	Measure
	Problem string `json:"problem,omitempty"` // why it could not be measured
}

// NoRank is Pair.Dialler if it is not known that a node has dialled.
const NoRank = -1

// Merge combines the answers of nodes, by job.
func Merge(found []FoundNode) (jobs []Job) {
	for _, g := range ByJob(found) {
		jobs = append(jobs, mergeJob(g))
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return jobs
}

// ByJob groups nodes by their jobs, in the order of each job's first node.
func ByJob(found []FoundNode) (jobs [][]FoundNode) {
	groups := make(map[string][]FoundNode)
	var order []string
	for _, f := range found {
		k := groupOf(f)
		for slices.ContainsFunc(groups[k], func(g FoundNode) bool { return g.About.isHost(f.About) }) {
			k += "'" // a job has a host only once: this is another job of the same launcher
		}
		if _, known := groups[k]; !known {
			order = append(order, k)
		}
		groups[k] = append(groups[k], f)
	}
	for _, k := range order {
		jobs = append(jobs, groups[k])
	}
	return jobs
}

// IsCalled reports whether a job with this name and ID is the wanted one: wanted is the
// name, or the beginning of the ID, or empty for any job.
func IsCalled(wanted, name, id string) bool {
	return wanted == "" || wanted == name || id != "" && strings.HasPrefix(id, wanted)
}

// groupOf is equal for the nodes of one job. Before the job's sites have met, only nodes of
// one launcher are known to belong together.
func groupOf(f FoundNode) string {
	if f.About.ID != "" {
		return f.About.ID
	}
	return "starting " + f.About.Job + " " + itoa(f.startedBy())
}

func mergeJob(found []FoundNode) Job {
	j := Job{Name: found[0].About.Job, ID: found[0].About.ID}
	j.Sites, j.Spares = parts(found), spares(found)
	m := merger{job: &j, pairs: make(map[[2]int]*Pair)}
	for _, f := range found {
		if f.Node != nil {
			j.Unused += f.Node.Unused
			j.Left += f.Node.Left
			j.Channels = append(j.Channels, f.Node.Channels...)
			j.World, j.Ports = cmp.Or(j.World, f.Node.World), j.Ports+f.Node.Ports
			j.WorldLinks = append(j.WorldLinks, f.Node.WorldLinks...)
			j.ByHost = append(j.ByHost, f.Node.ByHost...)
			for _, l := range f.Node.Log {
				l.Host, l.Site = f.About.Host, f.About.Site
				j.Log = append(j.Log, l)
			}
			for _, v := range f.Node.Views {
				m.add(v)
			}
		}
	}
	j.Pairs = make([]Pair, 0, len(m.pairs))
	for _, p := range m.pairs {
		p.finish()
		p.underWay()
		j.byChannel(p)
		j.Pairs = append(j.Pairs, *p)
	}
	slices.SortFunc(j.Pairs, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	channelsUnderWay(j.Channels)
	sortWorldLinks(j.WorldLinks)
	slices.SortStableFunc(j.Log, func(a, b LogLine) int { return a.At.Compare(b.At) })
	j.Unused = unusedPairs(&j)
	lost := losses(found)
	j.lose(lost)
	j.addSilent()
	j.mark(lost)
	if j.Channels == nil {
		j.Channels = []Channel{}
	}
	return j
}

// unusedPairs counts the pairs that the nodes left out because nothing was sent, each once.
func unusedPairs(j *Job) int {
	listed := make(map[[2]int]bool, len(j.Pairs))
	for _, p := range j.Pairs {
		listed[[2]int{p.A, p.B}] = true
	}
	if j.Unused == 0 || j.Left > 0 {
		return j.Unused
	}
	return countUnlisted(j, listed)
}

func countUnlisted(j *Job, listed map[[2]int]bool) (n int) {
	here := make(map[int]bool)
	size := 0
	for _, s := range j.Sites {
		size += s.Procs
		for _, p := range s.Ranks {
			here[p.Rank] = true
		}
	}
	for a := range size {
		for b := a + 1; b < size; b++ {
			if (here[a] || here[b]) && !listed[[2]int{a, b}] {
				n++
			}
		}
	}
	return n
}

// HasPID reports whether a process of this machine is a node of the job, started one, or is one
// of its procs.
func (j *Job) HasPID(pid int) bool {
	for _, s := range j.Spares {
		if s.Here && (s.PID == pid || s.Parent == pid) {
			return true
		}
	}
	for _, s := range j.Sites {
		if s.Here && (s.PID == pid || s.Parent == pid) {
			return true
		}
		for _, n := range s.Nodes {
			if n.Here && (n.PID == pid || n.Parent == pid) {
				return true
			}
		}
		for _, p := range s.Ranks {
			if p.PID == pid && !p.away {
				return true
			}
		}
	}
	return false
}

func parts(found []FoundNode) (list []SiteState) {
	for _, s := range sitesOf(found) {
		list = append(list, SiteState{Site: s})
	}
	for _, f := range found {
		if f.About.isSpare() {
			continue
		}
		i := slices.IndexFunc(list, func(p SiteState) bool { return p.Client == f.About.Client })
		if i < 0 {
			list = append(list, SiteState{Site: Site{Name: f.About.Site, Client: f.About.Client, Own: true}})
			i = len(list) - 1
		}
		list[i].add(f)
	}
	return list
}

func (p *SiteState) notAnswered(n HostNode) {
	problem := n.Problem
	if n.Host != "" {
		problem = "host " + n.Host + ": " + problem
	}
	if p.Problem != "" {
		problem = p.Problem + "; " + problem
	}
	p.Problem = problem
	if p.Since.IsZero() || !n.Since.IsZero() && n.Since.Before(p.Since) {
		p.Since = n.Since
	}
}

func (p *SiteState) add(f FoundNode) {
	if !f.Forwarded && !p.Here {
		p.Here, p.PID, p.Parent = true, f.About.PID, f.About.Parent
	}
	p.Name = cmp.Or(p.Name, f.About.Site)
	n := HostNode{Host: f.About.Host, Number: f.About.Number, PID: f.About.PID, Parent: f.About.Parent, Here: !f.Forwarded}
	switch {
	case errors.Is(f.Err, ErrNotAsked):
		p.NotAsked = f.Err.Error()
		return
	case f.Err != nil:
		n.Problem, n.Since = f.Err.Error(), f.Since
		p.notAnswered(n)
		p.remember(f.known)
	default:
		n.State = f.Node.State
		p.Waits = cmp.Or(p.Waits, f.Node.Waits)
		if p.State == "" || p.State == NodeRunning || n.State == NodeStarting {
			p.State = n.State
		}
		for _, x := range f.Node.Hosts {
			x.pid = f.About.PID
			p.Agents = append(p.Agents, x)
		}
		for _, x := range f.Node.Procs {
			x.away = f.Forwarded
			p.Ranks = append(p.Ranks, x)
		}
		p.Server = cmp.Or(p.Server, f.Node.Server)
		for _, x := range f.Node.Transports {
			x.Host = n.Host
			p.Transports = append(p.Transports, x)
		}
	}
	if n.Host != "" {
		p.Nodes = append(p.Nodes, n)
	}
}
