package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// Coverage counts what happened in runs, by the names in Counters.
type Coverage map[string]int64

// Counters lists everything that is counted in single jobs, so that a report also shows what never
// happened. WorldsCounters lists what is counted in addition where jobs meet.
var Counters, WorldsCounters = counters(), worldsCounters()

func worldsCounters() []string {
	names := []string{
		"meetings calls", "meetings calls that waited", "meetings links", "meetings links resumed", "meetings ties", "meetings contexts agreed",
		"meetings contexts private", "meetings spawned", "meetings not spawned", "meetings spare sites asked", "meetings messages", "meetings names", "meetings names refused", "meetings names published again", "meetings names lost", "steps openport", "steps closeport", "steps meet", "steps spawn", "steps idup", "steps finish",
		"steps merge", "steps intercomm", "steps disconnect", "steps publish", "steps unpublish", "steps lookup", "steps sever", "steps rejoin", "steps death", "steps fail", "deaths class " + mpierr.Port.String(), "deaths class " + mpierr.ProcAborted.String(),
	}
	for _, side := range []string{"accept", "connect"} {
		for at := range script.LastStep + 1 {
			if d := (script.Death{Accepts: side == "accept", At: at}); !d.Impossible() {
				names = append(names, fmt.Sprintf("deaths in step %s %d", side, at))
			}
		}
	}
	return names
}

func counters() []string {
	names := []string{
		"jobs", "jobs ended in order", "jobs ended by faults",
		"jobs of 1 site", "jobs of 2 sites", "jobs of 3 sites", "jobs of 4 sites", "jobs with a key", "jobs with boards", "messages in fast boxes",
		"foreign sites", "foreign false pk_len", "foreign eager", "foreign habits", "foreign skipped labels", "foreign extra labels",
		"parameters datalen 1", "parameters hiwater 1", "parameters ackmark below hiwater",
		"links proc-host", "links host-host", "links proc-proc", "links to the server", "links resumed",
		"packets DATA", "packets DATASYNC", "packets CONTINUATION", "packets PROTOACK", "packets SYNCACK",
		"packets CANCEL", "packets CANCELYES", "packets CANCELNO", "packets FINI",
		"messages delivered", "messages truncated", "messages standard", "messages synchronous", "messages buffered", "messages ready",
		"messages persistent", "messages from any source", "messages of any tag", "messages to itself",
		"receives by recv", "receives by probe", "receives by iprobe", "receives by mprobe", "receives by improbe",
		"cancels of sends won", "cancels of sends lost", "cancels of receives won", "cancels of receives lost",
		"steps exchange", "steps replace", "steps unmatched", "steps null", "steps pause", "steps attach", "steps detach",
		"steps dup", "steps split", "steps cart", "steps cartsub", "steps window", "steps free",
	}
	for h := script.HowWait; h <= script.HowGetStatus; h++ {
		names = append(names, "steps "+h.String())
	}
	for c := script.Barrier; c <= script.Exscan; c++ {
		names = append(names, "collectives "+c.String())
	}
	names = append(names, "collectives in place", "collectives with gaps")
	for o := script.OpSum; o <= script.OpModulo; o++ {
		names = append(names, "reductions "+o.String())
	}
	for _, k := range job.Kinds {
		names = append(names, "faults "+string(k))
	}
	return names
}

// Add adds the counts of other to those of c.
func (c Coverage) Add(other Coverage) {
	for name, n := range other {
		c[name] += n
	}
}

// String formats the counts per 1000 jobs, one line for each group.
func (c Coverage) String() string {
	names := slices.Clone(Counters)
	for _, name := range WorldsCounters {
		if _, counted := c[name]; counted {
			names = append(names, name)
		}
	}
	var b strings.Builder
	group := ""
	for _, name := range names {
		first, rest, _ := strings.Cut(name, " ")
		if first != group && name != "jobs" {
			if group != "" {
				b.WriteByte('\n')
			}
			group = first
			fmt.Fprintf(&b, "  %s:", first)
		}
		if name != "jobs" {
			fmt.Fprintf(&b, " %s %s;", rest, perThousand(c[name], c["jobs"]))
		}
	}
	return strings.ReplaceAll(b.String()+"\n", ";\n", "\n")
}

func perThousand(n, jobs int64) string {
	if jobs == 0 || n == 0 {
		return "0"
	}
	if x := float64(n) * 1000 / float64(jobs); x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprint((n*1000 + jobs/2) / jobs)
}

func (c Coverage) link(ends [2]job.Endpoint) {
	switch a, b := min(ends[0].Kind, ends[1].Kind), max(ends[0].Kind, ends[1].Kind); {
	case b == job.AtServer:
		c["links to the server"]++
	case b == job.AtProc:
		c["links proc-proc"]++
	case a == job.AtProc:
		c["links proc-host"]++
	default:
		c["links host-host"]++
	}
}

// run counts what happened in a run. Steps count if every rank finished.
func (c Coverage) run(x *execution, all []job.Result) {
	inOrder := true
	for _, r := range all {
		w := x.number(r)
		if w < 0 {
			continue
		}
		c["jobs"]++
		for name, n := range x.watches[w].checker.Counts() {
			c["packets "+name] += n
		}
		c["links resumed"] += int64(r.Resumed())
		c["messages in fast boxes"] += int64(r.Boxed())
		c.if1("jobs with boards", r.OnBoards() > 0)
		c.job(x.c.job(w))
		c.survival(x, r)
		for kind, n := range r.Faults() {
			c["faults "+string(kind)] += int64(n)
		}
		ended := r.Err == nil && errors.Join(append(r.Sites(), r.Server())...) == nil
		c.if1("jobs ended in order", ended)
		c.if1("jobs ended by faults", !ended)
		inOrder = inOrder && ended
	}
	for _, rec := range x.records {
		c.record(rec)
	}
	if _, death := x.victim(); inOrder || death {
		c.program(x.c.Program, x.records)
	}
	if x.meeting != nil {
		n := x.meeting.Counts
		c["meetings calls"] += int64(n.Connects)
		c["meetings calls that waited"] += int64(n.Waited)
		c["meetings links"] += int64(n.Links)
		c["meetings ties"] += int64(n.Ties)
		if _, losses := x.c.Program.Recover(); losses {
			c["survival links resumed"] += int64(n.Resumed)
		} else {
			c["meetings links resumed"] += int64(n.Resumed)
		}
		c["meetings links broken before use"] += int64(n.Broken)
		c["meetings spawned"] += int64(n.Spawned)
		c["meetings not spawned"] += int64(n.Unspawned)
		c["meetings spare sites asked"] += int64(n.Spares)
		c["meetings names"] += int64(n.Named)
		c["meetings names refused"] += int64(n.Misnamed)
		c["meetings names published again"] += int64(n.Renamed)
		c["meetings names lost"] += int64(n.Lost)
	}
}

func (c Coverage) if1(name string, cond bool) {
	if cond {
		c[name]++
	}
}

func (c Coverage) job(k *Case) {
	c[fmt.Sprintf("jobs of %d site%s", len(k.Sites), "s"[:min(1, len(k.Sites)-1)])]++
	p := k.params()
	c.if1("jobs with a key", k.Key)
	c.if1("parameters datalen 1", p.DataLen == 1)
	c.if1("parameters hiwater 1", p.HiWater == 1)
	c.if1("parameters ackmark below hiwater", p.AckMark < p.HiWater)
	for _, s := range k.Sites {
		if f := s.Foreign; f != nil {
			c["foreign sites"]++
			c.if1("foreign false pk_len", f.FalseLen)
			c.if1("foreign eager", f.Eager)
			c.if1("foreign habits", f.Habits)
			c.if1("foreign skipped labels", len(f.Skip) > 0)
			c.if1("foreign extra labels", len(f.Extra) > 0)
		}
	}
}

func (c Coverage) record(rec *script.Record) {
	c["messages delivered"] += int64(len(rec.Deliveries))
	for i := range rec.Deliveries {
		c.if1("messages truncated", rec.Deliveries[i].Truncated)
	}
	for _, m := range rec.Comms {
		c.if1("meetings contexts agreed", m.Inter && m.Context < uint64(comm.ContextLimit))
		c.if1("meetings contexts private", m.Context >= uint64(comm.ContextLimit))
	}
	for _, x := range rec.Cancels {
		c.if1("cancels of sends won", x.Side == script.SendSide && x.Cancelled)
		c.if1("cancels of sends lost", x.Side == script.SendSide && !x.Cancelled)
		c.if1("cancels of receives won", x.Side == script.RecvSide && x.Cancelled)
	}
}

func (c Coverage) program(p *script.Program, records []*script.Record) {
	for i := range p.Messages {
		m := &p.Messages[i]
		c["messages "+m.Mode.String()]++
		c["receives by "+m.By.String()]++
		c.if1("messages from any source", m.AnySource)
		c.if1("messages of any tag", m.AnyTag)
		c.if1("messages persistent", m.SendSlot != 0 || m.RecvSlot != 0)
		c.if1("messages to itself", m.From == m.To)
		c.if1("meetings messages", p.WorldOf(m.From) != p.WorldOf(m.To))
	}
	for _, s := range p.Steps {
		c.step(s)
		if s, ok := s.(script.Cancel); ok && s.Side == script.RecvSide {
			won := slices.ContainsFunc(records, func(rec *script.Record) bool {
				return slices.Contains(rec.Cancels, script.Cancelled{Req: s.Req, Cancelled: true})
			})
			c.if1("cancels of receives lost", !won) // ranks record only cancels that won
		}
	}
}

func (c Coverage) step(s script.Step) {
	if s, ok := s.(script.Collective); ok {
		c.collective(s)
		return
	}
	c["steps "+script.Verb(s)]++
}

func (c Coverage) collective(s script.Collective) {
	c["collectives "+s.Call.String()]++
	c.if1("collectives in place", s.InPlace)
	c.if1("collectives with gaps", s.Gap > 0)
	if s.Call >= script.Reduce {
		c["reductions "+s.Op.String()]++
	}
}
