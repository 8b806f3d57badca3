package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
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

// job returns what this look has of a job; nil: nothing.
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

// procs calls f for each proc.
func (l *look) procs(f func(who, *links.Part, *links.Proc)) {
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

// PairRates is what went between two procs since the look before.
type PairRates struct {
	A    int  `json:"a"` // ranks
	B    int  `json:"b"`
	AToB Rate `json:"a_to_b"`
	BToA Rate `json:"b_to_a"`
}

// Rate is what went one way each second. nil means unknown.
type Rate struct {
	Messages *float64 `json:"messages_per_s,omitempty"`
	Bytes    *float64 `json:"bytes_per_s,omitempty"` // of data; an older node tells of those of the direct link
}

// busyness orders pairs.
func (p *PairRates) busyness() (bytes, messages float64) {
	for _, r := range []Rate{p.AToB, p.BToA} {
		if r.Bytes != nil {
			bytes += *r.Bytes
		}
		if r.Messages != nil {
			messages += *r.Messages
		}
	}
	return bytes, messages
}

// ratesOf has the rates of a job's pairs, in their order, since it was as in before, which may be nil.
func ratesOf(j, before *Job, d time.Duration) []PairRates {
	then := make(map[[2]int]*links.Pair)
	whole := false // before has all that there was
	if before != nil {
		for i := range before.Pairs {
			p := &before.Pairs[i]
			then[[2]int{p.A, p.B}] = p
		}
		whole = before.Left == 0 && !slices.ContainsFunc(before.Sites, func(s links.Part) bool { return s.Problem != "" })
	}
	list := make([]PairRates, 0, len(j.Pairs))
	for i := range j.Pairs {
		p := &j.Pairs[i]
		x := PairRates{A: p.A, B: p.B}
		b := then[[2]int{p.A, p.B}]
		if b == nil && whole { // they had sent nothing
			b = &links.Pair{AToB: nothing(p.AToB), BToA: nothing(p.BToA)}
		}
		if b != nil && d > 0 {
			x.AToB, x.BToA = rateOf(p.AToB, b.AToB, d), rateOf(p.BToA, b.BToA, d)
		}
		list = append(list, x)
	}
	return list
}

// nothing is c before anything was sent.
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

// each is by how much a counter has grown each second.
func each(now, then uint64, d time.Duration) float64 {
	if now < then { // a link was made anew
		return 0
	}
	return float64(now-then) / d.Seconds()
}

// mostBusy is how many pairs impi-node status -watch shows.
const mostBusy = 10

// writeRates shows the pairs between which most went.
func writeRates(w io.Writer, rates []PairRates) {
	busy := slices.DeleteFunc(slices.Clone(rates), func(p PairRates) bool {
		bytes, messages := p.busyness()
		return bytes+messages == 0
	})
	if len(busy) == 0 {
		return
	}
	slices.SortStableFunc(busy, func(a, b PairRates) int {
		bytesA, messagesA := a.busyness()
		bytesB, messagesB := b.busyness()
		return cmp.Or(cmp.Compare(bytesB, bytesA), cmp.Compare(messagesB, messagesA))
	})
	fmt.Fprint(w, "\n  each second, busiest first\n")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	show := func(x *float64, unit string) string {
		if x == nil {
			return "?"
		}
		return perSecond(*x, unit)
	}
	for _, p := range busy[:min(len(busy), mostBusy)] {
		fmt.Fprintf(t, "    rank %d > %d\t%s messages\t%s\trank %d > %d\t%s messages\t%s\n",
			p.A, p.B, show(p.AToB.Messages, ""), show(p.AToB.Bytes, "B"), p.B, p.A, show(p.BToA.Messages, ""), show(p.BToA.Bytes, "B"))
	}
	_ = t.Flush()
	if n := len(busy) - mostBusy; n > 0 {
		fmt.Fprintf(w, "    and %d more: -json has all, impi-node top sorts them (l)\n", n)
	}
}
