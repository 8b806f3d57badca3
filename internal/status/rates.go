package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// look is what the nodes have said at a time. A nil *look has no jobs.
type look struct {
	report *Report
	at     time.Time
}

func (l *look) jobs() []Job {
	if l == nil {
		return nil
	}
	return l.report.Jobs
}

// job returns what this look has of a job, or nil if it has nothing.
func (l *look) job(j *Job) *Job {
	jobs := l.jobs()
	if i := slices.IndexFunc(jobs, func(x Job) bool { return jobName(&x) == jobName(j) }); i >= 0 {
		return &jobs[i]
	}
	return nil
}

// since is the time since an earlier look; 0 if there is none.
func (l *look) since(before *look) time.Duration {
	if before == nil {
		return 0
	}
	return l.at.Sub(before.at)
}

func (l *look) procs(f func(who, *links.SiteState, *links.Proc)) {
	jobs := l.jobs()
	for i := range jobs {
		for k := range jobs[i].Sites {
			p := &jobs[i].Sites[k]
			for n := range p.Ranks {
				x := &p.Ranks[n]
				w := who{job: jobName(&jobs[i]), rank: x.Rank}
				if x.Rank < 0 {
					w.pid = x.PID
				}
				f(w, p, x)
			}
		}
	}
}

// PairRates is the traffic between two procs since the look before.
type PairRates struct {
	A    int  `json:"a"` // ranks
	B    int  `json:"b"`
	AToB Rate `json:"a_to_b"`
	BToA Rate `json:"b_to_a"`
}

// Rate is the traffic in one direction each second. nil means unknown.
type Rate struct {
	Messages *float64 `json:"messages_per_s,omitempty"`
	Bytes    *float64 `json:"bytes_per_s,omitempty"` // bytes of data; an older node reports only those of the direct link
}

// ratesOf returns the rates of a job's pairs, in their order, since it was as in before, which may
// be nil.
func ratesOf(j, before *Job, d time.Duration) []PairRates {
	then := make(map[[2]int]*links.Pair)
	whole := false // the earlier look has all pairs
	if before != nil {
		for i := range before.Pairs {
			p := &before.Pairs[i]
			then[[2]int{p.A, p.B}] = p
		}
		whole = before.Left == 0 && !slices.ContainsFunc(before.Sites, func(s links.SiteState) bool { return !s.Answered() })
	}
	list := make([]PairRates, 0, len(j.Pairs))
	for i := range j.Pairs {
		p := &j.Pairs[i]
		x := PairRates{A: p.A, B: p.B}
		b := then[[2]int{p.A, p.B}]
		if b == nil && whole { // the two procs had sent nothing
			b = &links.Pair{AToB: nothing(p.AToB), BToA: nothing(p.BToA)}
		}
		if b != nil && d > 0 {
			x.AToB, x.BToA = rateOf(p.AToB, b.AToB, d), rateOf(p.BToA, b.BToA, d)
		}
		list = append(list, x)
	}
	return list
}

// nothing returns c as it was before anything was sent.
func nothing(c links.Count) links.Count {
	zero := new(uint64)
	for _, n := range []**uint64{&c.Messages, &c.Bytes, &c.Data} {
		if *n != nil {
			*n = zero
		}
	}
	return c
}

func rateOf(now, before links.Count, d time.Duration) (r Rate) {
	rate := func(now, before *uint64) *float64 {
		if now == nil || before == nil {
			return nil
		}
		x := each(*now, *before, d)
		return &x
	}
	return Rate{Messages: rate(now.Messages, before.Messages), Bytes: cmp.Or(rate(now.Data, before.Data), rate(now.Bytes, before.Bytes))}
}

// each is the growth of a counter per second.
func each(now, then uint64, d time.Duration) float64 {
	if now < then { // a link was made again
		return 0
	}
	return float64(now-then) / d.Seconds()
}

// hostRatesOf is ratesOf for the traffic between hosts, whatever way it went.
func hostRatesOf(now, before []links.HostTraffic, whole bool, d time.Duration) []PairRates {
	then := make(map[[2]int]*links.HostTraffic)
	for i := range before {
		then[[2]int{before[i].A, before[i].B}] = &before[i]
	}
	list := make([]PairRates, 0, len(now))
	for i := range now {
		h := &now[i]
		x := PairRates{A: h.A, B: h.B}
		b := then[[2]int{h.A, h.B}]
		if b == nil && whole {
			b = &links.HostTraffic{AToB: nothing(h.AToB), BToA: nothing(h.BToA)}
		}
		if b != nil && d > 0 {
			x.AToB, x.BToA = rateOf(h.AToB, b.AToB, d), rateOf(h.BToA, b.BToA, d)
		}
		list = append(list, x)
	}
	return list
}

func (j *Job) rate(before *Job, d time.Duration) {
	j.Rates = ratesOf(j, before, d)
	j.Hosts = hostRates(j, before, d)
	j.lines = linesOf(j, before, d)
}

func hostRates(j, before *Job, d time.Duration) []PairRates {
	if before == nil {
		return hostRatesOf(j.TrafficBetweenHosts(), nil, false, 0)
	}
	whole := !slices.ContainsFunc(before.Sites, func(s links.SiteState) bool { return !s.Answered() })
	return hostRatesOf(j.TrafficBetweenHosts(), before.TrafficBetweenHosts(), whole, d)
}

// line is all that links two procs or, in a job with too many pairs to tell of each, all procs of
// two hosts.
type line struct {
	PairRates
	hosts bool          // A and B are IMPI host ranks
	link  string        // transport and data plane
	state string        // state of the link
	sites string        // sites of A and B
	half  time.Duration // estimated half round trip; 0: not known
	sums  [2]links.Count
	rated bool // there was a look before
}

// linesOf returns the lines of a job, with rates since it was as in before, which may be nil.
func linesOf(j, before *Job, d time.Duration) (list []line) {
	hosts, more := LinksOfHosts(&j.Job)
	if more {
		return hostLines(j, before, hosts, d)
	}
	rates := ratesOf(j, before, d)
	for i := range j.Pairs {
		p := &j.Pairs[i]
		if p.State == links.StateUnused {
			continue
		}
		x := line{PairRates: rates[i], link: linkOf(p.Transport, p.Plane), state: string(p.State), sites: sitesOf(p.SiteA, p.SiteB), sums: [2]links.Count{p.AToB, p.BToA}, rated: before != nil}
		if p.Speed != nil {
			x.half = p.Speed.HalfTrip
		}
		list = append(list, x)
	}
	return list
}

func hostLines(j, before *Job, hosts []links.HostLinks, d time.Duration) (list []line) {
	site := make([]string, 0, len(hosts)) // site of each host
	for i := range j.Sites {
		for range j.Sites[i].Hosts {
			site = append(site, j.Sites[i].Label())
		}
	}
	name := func(host int) string {
		if host < 0 || host >= len(site) {
			return "?"
		}
		return site[host]
	}
	rates := hostRates(j, before, d)
	for i, t := range j.TrafficBetweenHosts() {
		x := line{PairRates: rates[i], hosts: true, sites: sitesOf(name(t.A), name(t.B)), half: t.HalfTrip, sums: [2]links.Count{t.AToB, t.BToA}, rated: before != nil}
		if k := slices.IndexFunc(hosts, func(h links.HostLinks) bool { return h.A == t.A && h.B == t.B }); k >= 0 {
			x.link, x.state = kindsOf(hosts[k].Links)
		}
		list = append(list, x)
	}
	return list
}

func kindsOf(all []links.LinkCount) (link, state string) {
	var names, states []string
	by, in := make(map[string]int), make(map[string]int)
	for _, l := range all {
		of, s := linkOf(l.Transport, l.Plane), string(l.State)
		if by[of] == 0 {
			names = append(names, of)
		}
		if in[s] == 0 {
			states = append(states, s)
		}
		by[of] += l.Pairs
		in[s] += l.Pairs
	}
	slices.Sort(names)
	slices.Sort(states)
	for i, n := range names {
		names[i] = fmt.Sprintf("%d %s", by[n], n)
	}
	if len(states) > 1 {
		for i, s := range states {
			states[i] = fmt.Sprintf("%d %s", in[s], s)
		}
	}
	return strings.Join(names, ", "), strings.Join(states, ", ")
}

func linkOf(transport, plane string) string {
	return strings.TrimSpace(cmp.Or(transport, "-") + " " + plane)
}

func sitesOf(a, b string) string {
	if a == b {
		return a
	}
	return a + " - " + b
}

func (x *line) ends() string {
	if x.hosts {
		return fmt.Sprintf("host %d - %d", x.A, x.B)
	}
	return fmt.Sprintf("%d - %d", x.A, x.B)
}

func (x *line) latency() string {
	if x.half == 0 {
		return ""
	}
	return links.Duration(x.half)
}

// counts returns what went there and back: messages, then bytes; per second if there was an earlier
// look. Unknown values are negative.
func (x *line) counts() (n [4]float64) {
	value := func(sum *uint64, rate *float64) float64 {
		switch {
		case x.rated && rate != nil:
			return *rate
		case !x.rated && sum != nil:
			return float64(*sum)
		}
		return -1
	}
	for i, r := range []Rate{x.AToB, x.BToA} {
		n[i] = value(x.sums[i].Messages, r.Messages)
		n[2+i] = value(cmp.Or(x.sums[i].Data, x.sums[i].Bytes), r.Bytes)
	}
	return n
}

const mostBusy = 10

func writeLines(w io.Writer, all []line) {
	busy := slices.Clone(all)
	slices.SortStableFunc(busy, func(a, b line) int {
		x, y := a.counts(), b.counts()
		return cmp.Or(cmp.Compare(max(y[2], 0)+max(y[3], 0), max(x[2], 0)+max(x[3], 0)), cmp.Compare(max(y[0], 0)+max(y[1], 0), max(x[0], 0)+max(x[1], 0)))
	})
	if len(busy) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	each := ""
	if busy[0].rated {
		each = "/S"
	}
	fmt.Fprintf(t, "    ENDS\tLINK\tSTATE\tHALF TRIP\tMESSAGES%[1]s > / <\tBYTES%[1]s > / <\n", each)
	for i := range busy[:min(len(busy), mostBusy)] {
		x := &busy[i]
		n := x.counts()
		both := func(there, back float64, unit string) string {
			s := cmp.Or(perSecond(there, unit), "?")
			if x.hosts && x.A == x.B {
				return s
			}
			return s + " / " + cmp.Or(perSecond(back, unit), "?")
		}
		fmt.Fprintf(t, "    %s\t%s\t%s\t%s\t%s\t%s\n", x.ends(), x.link, x.state, cmp.Or(x.latency(), "-"), both(n[0], n[1], ""), both(n[2], n[3], "B"))
	}
	_ = t.Flush()
	if n := len(busy) - mostBusy; n > 0 {
		fmt.Fprintf(w, "    and %d more: -json has all, impi-node top sorts them (l)\n", n)
	}
}
