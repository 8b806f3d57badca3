// Package jobreport is what is left of a job after its end: one HTML file that says who waited for
// whom, how long the procs were in which calls of MPI, what they sent each other, what broke, and
// what ran. The file has all of it as JSON, too, which impi-node report reads.
package jobreport

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
)

// Schema is the version of a Report as JSON. Adding fields does not change it.
const Schema = 1

// Bounds of a Report, so that its file stays small however many procs a job has.
const (
	mostDetailed = 128  // procs of a job whose waits and messages are listed by rank; more are by host
	mostRanks    = 1024 // ranks that are listed
	mostWaits    = 4096
	mostSent     = mostDetailed * mostDetailed
	mostOthers   = 256 // transports, sites, faults
	mostByRank   = 8   // calls of which each rank's time is listed
	mostText     = 4096
	mostConfig   = 256 << 10
)

// Report describes a job, or the part of it that the head of one site knows.
type Report struct {
	Schema   int       `json:"schema"`
	Job      string    `json:"job"`
	ID       string    `json:"id,omitempty"`
	By       string    `json:"by"`                // the site whose head has written it
	Whole    bool      `json:"whole"`             // the final figures of all procs of own sites are in it
	Began    time.Time `json:"began"`             // of the node
	Ran      time.Time `json:"ran,omitzero"`      // the procs ran from then on; zero: they did not
	Ended    time.Time `json:"ended"`             // of the node
	Status   int       `json:"exit_status"`       // of the node
	Failure  string    `json:"failure,omitempty"` // the first; empty: there was none
	Sites    []Site    `json:"sites,omitempty"`
	Moments  []Moment  `json:"moments,omitempty"` // of procs without final figures
	ByHost   bool      `json:"by_host"`           // Waits and Sent are of hosts, which Hosts names, not of ranks
	Hosts    []string  `json:"hosts,omitempty"`
	Ranks    []Rank    `json:"ranks,omitempty"`
	Left     int       `json:"ranks_left_out,omitempty"`
	Calls    []Call    `json:"calls,omitempty"` // of all procs
	Waits    []Wait    `json:"waits,omitempty"` // the longest first
	Sent     []Sent    `json:"sent,omitempty"`
	Links    []Link    `json:"links,omitempty"`
	Faults   []Fault   `json:"faults,omitempty"` // by time
	Plugins  []Plugin  `json:"plugins,omitempty"`
	Versions []Version `json:"versions,omitempty"`
	Config   string    `json:"config,omitempty"` // without comments, and without values that may be secret
}

// Site is a site of the job, and how much the report knows of its procs.
type Site struct {
	Name  string `json:"name"`
	First int    `json:"first_rank"`
	Procs int    `json:"procs"`
	Known string `json:"known"` // "to the end", "as of ...", or why nothing is known
}

// Moment is the time of the last figures that procs of a node reported, if the procs continued
// after it.
type Moment struct {
	Site  string    `json:"site"`
	Host  string    `json:"host,omitempty"` // empty: all that the site's node runs
	Procs int       `json:"procs"`
	At    time.Time `json:"at"`
}

// Rank is the part of a report about one proc.
type Rank struct {
	Rank    int              `json:"rank"`
	Site    string           `json:"site"`
	Host    string           `json:"host"`
	State   string           `json:"state"`
	Time    int64            `json:"time_ns"`           // from MPI_Init to its last count; 0: it has counted nothing
	Classes map[string]int64 `json:"classes,omitempty"` // ns in calls of MPI
	Calls   map[string]int64 `json:"calls,omitempty"`   // the same by call, for the calls that took longest in all ranks
	Waited  int64            `json:"waited_ns"`
}

// Call is about all calls of a function of MPI in all procs.
type Call struct {
	Name  string `json:"name"`
	Class string `json:"class"`
	Calls uint64 `json:"calls"`
	Time  int64  `json:"time_ns"`
	Most  int64  `json:"most_ns"` // largest total of one rank
	Rank  int    `json:"most_rank"`
}

// Wait is the time that one rank or host waited for another one, which may be wireup.NoPeer.
type Wait struct {
	From  int    `json:"from"`
	For   int    `json:"for"`
	Cause string `json:"cause"`
	Time  int64  `json:"time_ns"`
}

// Sent counts what one rank or host has sent to another one, which may be wireup.NoPeer.
type Sent struct {
	From     int    `json:"from"`
	To       int    `json:"to"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Fault is a log line of nodes about a fault, or about the end of one.
type Fault struct {
	At    time.Time `json:"at"` // the last time
	Times int       `json:"times"`
	Level string    `json:"level"`
	Site  string    `json:"site"`
	Host  string    `json:"host,omitempty"`
	Text  string    `json:"text"`
}

// Link is about the links of a kind: pairs of procs, or channels between hosts.
type Link struct {
	Kind      string `json:"kind"`
	Transport string `json:"transport"`
	Count     int    `json:"count"`
	Resumes   int    `json:"resumes"`
	Lost      string `json:"lost,omitempty"` // why one broke last
}

// Plugin is a transport of a node.
type Plugin struct {
	Site     string `json:"site"`
	Host     string `json:"host,omitempty"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Starts   int    `json:"starts"`
	Failures int    `json:"failures"`
	Error    string `json:"error,omitempty"`
}

// Version is the version of something that ran.
type Version struct {
	What    string `json:"what"`
	Version string `json:"version"`
}

// LatestAnswers holds the latest answers of the nodes of a job.
type LatestAnswers struct {
	nodes map[nodeKey]answer
	logs  map[nodeKey][]Fault
}

// nodeKey is a node. In a spawned world two clients may be of one site.
type nodeKey struct {
	client     int
	site, host string
	number     int
}

type answer struct {
	node  *links.Node
	at    time.Time
	final bool
}

// Add adds the answers of nodes. An earlier answer of a node is replaced only if the new one has at
// least as many accounts of procs: a node that is ending may no longer have what its procs have
// counted.
func (k *LatestAnswers) Add(a links.Answer, now time.Time) {
	if k.nodes == nil {
		k.nodes, k.logs = make(map[nodeKey]answer), make(map[nodeKey][]Fault)
	}
	all := append([]links.HostAnswer{{Node: a.Node}}, a.Others...)
	for _, o := range all {
		if o.Node == nil || len(o.Node.Procs) == 0 || len(k.nodes) > mostRanks {
			continue
		}
		key := nodeKey{o.Node.Client, o.Node.Site, o.Node.Host, o.Node.Number}
		if faults := faultsOf(o.Node); len(faults) > 0 {
			k.logs[key] = faults
		}
		before, met := k.nodes[key]
		if met && accounts(before.node) > accounts(o.Node) {
			continue
		}
		k.nodes[key] = answer{o.Node, now, finished(o.Node)}
	}
}

// faultsOf are the faults in a node's log, equal ones once.
func faultsOf(n *links.Node) (all []Fault) {
	at := make(map[Fault]int)
	for _, l := range n.Log {
		if !l.IsEvent() {
			continue
		}
		f := Fault{Level: short(l.Level), Site: short(cmp.Or(l.Site, n.Site)), Host: short(cmp.Or(l.Host, hostName(n))), Text: short(l.Text)}
		i, known := at[f]
		if !known {
			i = len(all)
			at[f] = i
			all = append(all, f)
		}
		all[i].At = l.At
		all[i].Times++
	}
	return all[max(0, len(all)-mostOthers):]
}

// hostName is the address of a node's host; empty if it has several.
func hostName(n *links.Node) string {
	if n.Host == "" && len(n.Hosts) == 1 {
		return n.Hosts[0].Address
	}
	return n.Host
}

func accounts(n *links.Node) (count int) {
	for i := range n.Procs {
		if n.Procs[i].Account != nil {
			count++
		}
	}
	return count
}

// finished reports whether all procs of a node have passed MPI_Finalize, or ended.
func finished(n *links.Node) bool {
	return !slices.ContainsFunc(n.Procs, func(p links.Proc) bool {
		return p.State != links.ProcFinished && p.State != links.ProcEnded
	})
}

// Complete reports whether the final figures of all procs of a site are known.
func (k *LatestAnswers) Complete(s links.Site) bool { return k.of(s) == toTheEnd }

// Fill adds to a report what the nodes have reported. sites are those of the job.
func (k *LatestAnswers) Fill(r *Report, sites []links.Site) {
	r.Schema = Schema
	sum := &summing{r: r, host: make(map[int]int), calls: make(map[string]*Call), waits: make(map[Wait]int64), sent: make(map[[2]int]*Sent), links: make(map[[2]string]*Link), joined: make(map[joint]*links.View), channels: make(map[joint]*links.Channel)}
	total := 0
	for _, s := range sites {
		total += s.Procs
	}
	r.ByHost = total > mostDetailed
	keys := slices.SortedFunc(maps.Keys(k.nodes), func(a, b nodeKey) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.number, b.number), cmp.Compare(a.site, b.site), cmp.Compare(a.host, b.host))
	})
	for _, key := range keys {
		sum.hosts(k.nodes[key].node)
	}
	for _, key := range keys {
		sum.add(k.nodes[key].node)
		if a := k.nodes[key]; !a.final && len(r.Moments) < mostOthers {
			r.Moments = append(r.Moments, Moment{short(a.node.Site), short(hostName(a.node)), len(a.node.Procs), a.at})
		}
		r.Faults = append(r.Faults, k.logs[key]...)
	}
	slices.SortStableFunc(r.Faults, func(a, b Fault) int { return a.At.Compare(b.At) })
	r.Faults = r.Faults[max(0, len(r.Faults)-mostOthers):]
	sum.finish()
	r.Whole = len(sites) > 0
	for _, s := range sites[:min(len(sites), mostOthers)] {
		known := k.of(s)
		r.Whole = r.Whole && (known == toTheEnd || !s.Own)
		r.Sites = append(r.Sites, Site{short(s.Name), s.First, s.Procs, known})
	}
}

// Values of Site.Known, or their beginnings.
const (
	toTheEnd = "to the end"
	ranStill = "as of "
)

func (k *LatestAnswers) of(s links.Site) string {
	procs, final, last := 0, true, time.Time{}
	for _, a := range k.nodes {
		if a.node.Client != s.Client {
			continue
		}
		procs += len(a.node.Procs)
		if !a.final {
			final = false
		}
		if a.at.After(last) {
			last = a.at
		}
	}
	switch {
	case !s.Own:
		return "nothing: it runs another MPI"
	case procs == 0:
		return "nothing: its nodes have not answered, or could not be asked; its own head may have written a report"
	case procs < s.Procs:
		return "a part: not all of its hosts have answered"
	case !final:
		return ranStill + last.UTC().Format(time.RFC3339) + ", while it ran"
	}
	return toTheEnd
}

type summing struct {
	r     *Report
	host  map[int]int // by rank
	names map[string]int
	calls map[string]*Call
	waits map[Wait]int64
	sent  map[[2]int]*Sent
	links map[[2]string]*Link

	joined   map[joint]*links.View // the view of one end of each pair
	channels map[joint]*links.Channel
}

// joint is two ranks, or hosts, the lower one first.
type joint struct{ a, b int }

func hostOf(n *links.Node, p *links.Proc) string {
	for _, h := range n.Hosts {
		if h.Rank == p.Host {
			return h.Address
		}
	}
	return n.Host
}

func (s *summing) hosts(n *links.Node) {
	if s.names == nil {
		s.names = make(map[string]int)
	}
	for i := range n.Procs {
		name := short(n.Site + " " + hostOf(n, &n.Procs[i]))
		at, known := s.names[name]
		if !known && len(s.r.Hosts) < mostDetailed {
			at = len(s.r.Hosts)
			s.names[name] = at
			s.r.Hosts = append(s.r.Hosts, name)
		} else if !known {
			at = wireup.NoPeer
		}
		s.host[n.Procs[i].Rank] = at
	}
}

func (s *summing) who(rank int) int {
	if !s.r.ByHost || rank < 0 {
		return max(rank, wireup.NoPeer)
	}
	if at, known := s.host[rank]; known {
		return at
	}
	return wireup.NoPeer
}

func (s *summing) add(n *links.Node) {
	for i := range n.Procs {
		s.proc(n, &n.Procs[i])
	}
	for i := range n.Views {
		v := n.Views[i]
		at := joint{min(v.Local, v.Peer), max(v.Local, v.Peer)}
		if other := s.joined[at]; other != nil { // both ends report the pair
			if !v.Dialled {
				v, *other = *other, v
			}
			v.Resumes = max(v.Resumes, other.Resumes)
		}
		s.joined[at] = &v
	}
	for _, c := range n.Channels {
		at := joint{min(c.From, c.To), max(c.From, c.To)}
		if other := s.channels[at]; other != nil {
			c.Resumes, c.Lost = max(c.Resumes, other.Resumes), cmp.Or(c.Lost, other.Lost)
		}
		s.channels[at] = &c
	}
	for _, t := range n.Transports {
		if len(s.r.Plugins) < mostOthers {
			s.r.Plugins = append(s.r.Plugins, Plugin{short(n.Site), short(hostName(n)), short(t.Name), short(t.State), t.Starts, t.Failures, short(t.Error)})
		}
	}
}

func (s *summing) link(kind, transport string, resumes int, lost string) {
	key := [2]string{short(kind), short(transport)}
	l := s.links[key]
	if l == nil {
		if len(s.links) == mostOthers {
			return
		}
		l = &Link{Kind: key[0], Transport: key[1]}
		s.links[key] = l
	}
	l.Count++
	l.Resumes += resumes
	if lost != "" {
		l.Lost = short(lost)
	}
}

func (s *summing) proc(n *links.Node, p *links.Proc) {
	state := string(p.State)
	if p.Ended != "" {
		state = p.Ended
	}
	x := Rank{Rank: p.Rank, Site: short(n.Site), Host: short(hostOf(n, p)), State: short(state)}
	if a := p.Account; a != nil && p.Rank >= 0 {
		x.Time, x.Classes, x.Calls = a.Time, make(map[string]int64), make(map[string]int64)
		all := a.Calls
		if a.Init > 0 {
			all = append(slices.Clone(all), wireup.CallSum{Name: "MPI_Init", Class: "init", Calls: 1, Time: a.Init})
		}
		for _, c := range all {
			x.Classes[short(c.Class)] += c.Time
			x.Calls[short(c.Name)] += c.Time
			s.call(p.Rank, c)
		}
		for _, w := range a.Waits {
			x.Waited += w.Time
			s.waits[Wait{From: s.who(p.Rank), For: s.who(w.Peer), Cause: short(w.Cause)}] += w.Time
		}
		for _, m := range a.Sent {
			key := [2]int{s.who(p.Rank), s.who(m.Peer)}
			if s.sent[key] == nil {
				s.sent[key] = &Sent{From: key[0], To: key[1]}
			}
			s.sent[key].Messages += m.Messages
			s.sent[key].Bytes += m.Bytes
		}
	}
	s.r.Ranks = append(s.r.Ranks, x)
}

func (s *summing) call(rank int, c wireup.CallSum) {
	x := s.calls[c.Name]
	if x == nil {
		if len(s.calls) >= 2*mostOthers {
			return
		}
		x = &Call{Name: short(c.Name), Class: short(c.Class)}
		s.calls[c.Name] = x
	}
	x.Calls += c.Calls
	x.Time += c.Time
	if c.Time > x.Most {
		x.Most, x.Rank = c.Time, rank
	}
}

func (x *Rank) inMPI() (sum int64) {
	for _, t := range x.Classes {
		sum += t
	}
	return sum
}

// finish sorts what was added, and leaves out what is too much.
func (s *summing) finish() {
	r := s.r
	if over := len(r.Ranks) - mostRanks; over > 0 { // keep the ranks that were in MPI longest
		slices.SortStableFunc(r.Ranks, func(a, b Rank) int { return cmp.Compare(b.inMPI(), a.inMPI()) })
		r.Ranks, r.Left = r.Ranks[:mostRanks:mostRanks], over
	}
	slices.SortFunc(r.Ranks, func(a, b Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, c := range s.calls {
		r.Calls = append(r.Calls, *c)
	}
	slices.SortFunc(r.Calls, func(a, b Call) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
	longest := r.longest()
	for i := range r.Ranks {
		maps.DeleteFunc(r.Ranks[i].Calls, func(name string, _ int64) bool { return !slices.Contains(longest, name) })
	}
	for w, t := range s.waits {
		if t == 0 {
			continue
		}
		w.Time = t
		r.Waits = append(r.Waits, w)
	}
	slices.SortFunc(r.Waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.From, b.From), cmp.Compare(a.For, b.For), cmp.Compare(a.Cause, b.Cause))
	})
	r.Waits = r.Waits[:min(len(r.Waits), mostWaits)]
	for _, m := range s.sent {
		r.Sent = append(r.Sent, *m)
	}
	slices.SortFunc(r.Sent, func(a, b Sent) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	r.Sent = r.Sent[:min(len(r.Sent), mostSent)]
	for _, v := range s.joined {
		s.link("pairs, "+string(v.State), v.Transport, v.Resumes, "")
	}
	for _, at := range slices.SortedFunc(maps.Keys(s.channels), func(x, y joint) int { return cmp.Or(x.a-y.a, x.b-y.b) }) {
		c := s.channels[at]
		s.link("channels, "+string(c.State), c.Transport, c.Resumes, c.Lost)
	}
	for _, l := range s.links {
		r.Links = append(r.Links, *l)
	}
	slices.SortFunc(r.Links, func(a, b Link) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Transport, b.Transport)) })
}

func short(s string) string { return s[:min(len(s), mostText)] }
