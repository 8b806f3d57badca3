package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/quantity"
)

type row struct {
	job   string
	cells []string
	keys  []key  // what the cells are sorted by
	last  string // text after the cells
}

// key is what a cell is sorted by: the number, and then the text.
type key struct {
	n    float64
	text string
}

// largest is the key of a number of which the largest comes first.
func largest(n float64) key { return key{n: -n} }

func (k key) compare(b key) int { return cmp.Or(cmp.Compare(k.n, b.n), cmp.Compare(k.text, b.text)) }

type who struct {
	job  string
	rank int
	pid  int // of procs without a rank
}

// jobName tells jobs of the same name apart.
func jobName(j *Job) string { return j.Name + " " + j.ID }

// procTitles are the heads of the columns about procs; what a proc does is the last one.
var procTitles = []string{"RANK", "HOST", "STATE", "FOR", "MSG/S", "SENT/S", "RECV/S", "ASLEEP", "DOES"}

// procRows returns a row for each proc, with rates since an earlier look, which may be nil.
func procRows(r, before *look) (rows []row) {
	then := make(map[who]*links.Counts)
	before.procs(func(w who, _ *links.SiteState, x *links.Proc) { then[w] = x.Counts })
	got := received(r, before)
	r.procs(func(w who, p *links.SiteState, x *links.Proc) {
		in, known := got[w]
		if !known {
			in = -1
		}
		rows = append(rows, procRow(w, p, x, then[w], in, r.since(before)))
	})
	return rows
}

// received returns how many bytes of data per second others have sent to each rank, where all pairs
// of a job are told of: procs count what they send.
func received(r, before *look) map[who]float64 {
	got := make(map[who]float64)
	jobs := r.jobs()
	for i := range jobs {
		j := &jobs[i]
		was := before.job(j)
		if _, more := LinksOfHosts(&j.Job); more || was == nil || r.since(before) <= 0 {
			continue
		}
		for k := range j.Sites {
			for n := range j.Sites[k].Ranks {
				got[who{job: jobName(j), rank: j.Sites[k].Ranks[n].Rank}] = 0
			}
		}
		for _, x := range ratesOf(j, was, r.since(before)) {
			for rank, rate := range map[int]*float64{x.B: x.AToB.Bytes, x.A: x.BToA.Bytes} {
				if rate != nil {
					got[who{job: jobName(j), rank: rank}] += *rate
				}
			}
		}
	}
	return got
}

func procRow(w who, p *links.SiteState, x *links.Proc, before *links.Counts, in float64, d time.Duration) row {
	state, what := Describe(x)
	rank, host, asleep, share := "-", p.Label(), "", ""
	if w.rank >= 0 {
		rank = fmt.Sprint(w.rank)
	}
	if h := strings.TrimSpace(hostOf(p, x)); h != "" {
		host += " " + h
	}
	var blocked time.Duration
	if x.Blocked != nil {
		if blocked = x.Blocked.Time; blocked > 0 {
			asleep = ago(blocked)
		}
	}
	messages, sent, received, slept := -1., -1., -1., -1.
	if now := x.Counts; now != nil && before != nil && d > 0 {
		messages, sent, received = each(now.Messages, before.Messages, d), each(now.Data, before.Data, d), in
		own := d // between the answers, by the proc's clock
		if now.Clock > before.Clock && before.Clock > 0 {
			own = now.Clock - before.Clock
		}
		slept = min(1, max(0, (now.Slept-before.Slept).Seconds()/own.Seconds()))
		share = fmt.Sprintf("%.0f %%", 100*slept)
	}
	return row{
		job: w.job, last: what,
		cells: []string{rank, host, state, asleep, perSecond(messages, ""), perSecond(sent, "B"), perSecond(received, "B"), share},
		keys:  []key{{n: float64(w.rank)}, {text: host}, {text: state}, largest(blocked.Seconds()), largest(messages), largest(sent), largest(received), largest(slept)},
	}
}

// pairTitles are the heads of the columns about links. Rates are from the lower rank to the higher
// one (>), and back (<).
var pairTitles = []string{"ENDS", "LINK", "STATE", "HALF TRIP", "MSG/S >", "MSG/S <", "B/S >", "B/S <", "SITES"}

// pairRows returns a row for each pair of procs, or of hosts, that has sent something, with rates
// since an earlier look.
func pairRows(r, before *look) (rows []row) {
	jobs := r.jobs()
	for i := range jobs {
		j := &jobs[i]
		for _, l := range linesOf(j, before.job(j), r.since(before)) {
			l.rated = true // no sums in columns of rates
			x := row{
				job: jobName(j), last: l.sites,
				cells: []string{l.ends(), l.link, l.state, l.latency()},
				keys:  []key{{n: float64(l.A)*(1<<32) + float64(l.B)}, {text: l.link}, {text: l.state}, largest(l.half.Seconds())},
			}
			for i, v := range l.counts() {
				unit := ""
				if i >= 2 {
					unit = "B"
				}
				x.cells, x.keys = append(x.cells, perSecond(v, unit)), append(x.keys, largest(v))
			}
			rows = append(rows, x)
		}
	}
	return rows
}

func stateOf(x *links.Proc) string {
	switch {
	case x.State == links.ProcInit:
		return "init"
	case x.State == links.ProcNotTold:
		return "silent"
	case x.State == links.ProcLost:
		return "lost"
	case x.State == "": // older nodes do not report it
		return "unknown"
	case x.State != links.ProcRunning:
		return string(x.State)
	case x.Silent != "":
		return "silent"
	case x.Blocked != nil:
		return "blocked"
	}
	return "running"
}

// perSecond shows a rate as an amount, without "per second"; it shows nothing if the rate is not
// known.
func perSecond(x float64, unit string) string {
	if x < 0 {
		return ""
	}
	return quantity.Text(x, unit)
}
