package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// who is a proc of a job.
type who struct {
	job  string
	rank int
	pid  int // of procs without a rank
}

// row is a proc in impi-node top.
type row struct {
	who
	site, host, state, does string
	asleep                  time.Duration // how long it has been blocked
	counts                  *links.Counts // nil: not known

	// Rates since the last look; -1: not known.
	messages, sent, received float64 // each second
	slept                    float64 // share of the time
}

// rowsOf has a row for each proc.
func rowsOf(r *Report) (rows []row) {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		for k := range j.Sites {
			p := &j.Sites[k]
			for n := range p.Ranks {
				x := &p.Ranks[n]
				w := row{
					who: who{j.Name + " " + j.ID, x.Rank, 0}, site: p.Label(), host: strings.TrimSpace(hostOf(p, x)),
					state: stateOf(x), does: does(x), counts: x.Counts, messages: -1, sent: -1, received: -1, slept: -1,
				}
				if x.Rank < 0 {
					w.pid = x.PID
				}
				if x.Blocked != nil {
					w.asleep, w.does = x.Blocked.Time, waitsIn(x.Blocked)
				}
				rows = append(rows, w)
			}
		}
	}
	return rows
}

// stateOf is a proc's state in a word.
func stateOf(x *links.Proc) string {
	switch {
	case x.State == links.ProcInit:
		return "init"
	case x.State == "": // older nodes do not say
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

// rate sets the rates since an earlier row of the same proc.
func (r *row) rate(before row, d time.Duration) {
	if d <= 0 {
		return
	}
	each := func(now, then uint64) float64 {
		if now < then { // a link was made anew
			return 0
		}
		return float64(now-then) / d.Seconds()
	}
	r.messages = each(r.counts.Messages, before.counts.Messages)
	r.sent = each(r.counts.Sent, before.counts.Sent)
	r.received = each(r.counts.Received, before.counts.Received)
	r.slept = min(1, max(0, (r.counts.Slept-before.counts.Slept).Seconds()/d.Seconds()))
}

// column is one by which rows are sorted.
type column int

const (
	byRank column = iota
	byHost
	byState
	byAsleep
	byMessages
	bySent
	byReceived
	bySlept
	columns
)

// titles are the heads of the columns, before what a proc does.
var titles = [columns]string{"RANK", "HOST", "STATE", "FOR", "MSG/S", "SENT/S", "RECV/S", "ASLEEP"}

// compare orders rows by a column: numbers but ranks from the largest on.
func compare(a, b *row, by column) int {
	var c int
	switch by {
	case byHost:
		c = cmp.Or(cmp.Compare(a.site, b.site), cmp.Compare(a.host, b.host))
	case byState:
		c = cmp.Compare(a.state, b.state)
	case byAsleep:
		c = cmp.Compare(b.asleep, a.asleep)
	case byMessages:
		c = cmp.Compare(b.messages, a.messages)
	case bySent:
		c = cmp.Compare(b.sent, a.sent)
	case byReceived:
		c = cmp.Compare(b.received, a.received)
	case bySlept:
		c = cmp.Compare(b.slept, a.slept)
	case byRank, columns:
	}
	return cmp.Or(c, cmp.Compare(a.job, b.job), cmp.Compare(a.rank, b.rank), cmp.Compare(a.pid, b.pid))
}

// cells are the texts of the row's columns.
func (r *row) cells() [columns]string {
	rank := "-"
	if r.rank >= 0 {
		rank = fmt.Sprint(r.rank)
	}
	host := r.site
	if r.host != "" {
		host += " " + r.host
	}
	asleep := ""
	if r.asleep > 0 {
		asleep = ago(r.asleep)
	}
	share := ""
	if r.slept >= 0 {
		share = fmt.Sprintf("%.0f %%", 100*r.slept)
	}
	return [columns]string{rank, host, r.state, asleep, perSecond(r.messages), perSecond(r.sent), perSecond(r.received), share}
}

// perSecond shows a rate in at most six characters; nothing if it is not known.
func perSecond(x float64) string {
	if x < 0 {
		return ""
	}
	for _, unit := range []string{"", "k", "M", "G"} {
		if x < 9999.5 {
			return fmt.Sprintf("%.0f%s", x, unit)
		}
		x /= 1000
	}
	return fmt.Sprintf("%.0fT", x)
}
