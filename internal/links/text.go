package links

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/quantity"
)

// Style says what WriteText shows in addition to the table.
type Style struct {
	Explain bool      // every candidate, with its verdict
	Now     time.Time // reference for ages
}

// The pictures of a link between two ranks.
const (
	drawMemory  = "==="
	drawSocket  = "---"
	drawPlugin  = "-#-"
	drawNative  = "-@-"
	drawAgents  = "-o-"
	drawOpening = "..."
	drawUnused  = "   "
	drawEnded   = "-/-"
)

func (p *Pair) draw() (picture, meaning string) {
	switch p.State {
	case StateUnused:
		return drawUnused, ""
	case StateOpening, StateWaiting:
		return drawOpening, "being opened"
	case StateAgents:
		return drawAgents, "through the agents"
	case StateEnded:
		return drawEnded, "ended"
	case StateLinked, StateLost: // the transport is drawn
	}
	if slices.ContainsFunc(p.Views, func(v View) bool { return v.Native }) {
		return drawNative, "the site's own MPI"
	}
	switch p.Plane {
	case "peer-shm":
		return drawMemory, "shared memory"
	case "rdma", "ring", "stream", "grpc":
		return drawPlugin, "through a plugin"
	}
	return drawSocket, "socket"
}

func (p *Pair) ends() string {
	picture, _ := p.draw()
	return fmt.Sprintf("%d %s %d", p.A, picture, p.B)
}

// WriteText writes a report as a text for people: its jobs, with an empty line between them.
func WriteText(w io.Writer, r *Report, s Style) {
	for i := range r.Jobs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		writeJob(w, &r.Jobs[i], worldsOf(r), s)
	}
}

func writeJob(w io.Writer, j *Job, worlds map[string]string, s Style) {
	fmt.Fprintf(w, "job %s", j.Name)
	if j.ID != "" {
		fmt.Fprintf(w, "  (%s)", j.ID)
	}
	fmt.Fprint(w, "\n\n")
	writeSites(w, j)
	writePairs(w, j, s)
	writeChannels(w, j, s)
	writeWorldLinks(w, j, worlds, s)
	if s.Explain {
		writeProcs(w, j)
		writeReasons(w, j)
	}
	writeAdvice(w, j)
}

func writeSites(w io.Writer, j *Job) {
	var t table
	for i := range j.Sites {
		p := &j.Sites[i]
		t.add("site "+p.Label(), p.RankText(), strings.Join(p.Hosts, " "), strings.TrimSpace(p.Answer("links")+"  "+p.waits()))
	}
	t.write(w, "  ")
	for i := range j.Spares {
		fmt.Fprintf(w, "  %s\n", j.Spares[i].Text(time.Now()))
	}
	fmt.Fprintln(w)
}

// RankText names the procs of a site: "ranks 0-3"; "" if it has none.
func (p *SiteState) RankText() string {
	switch p.Procs {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("rank %d", p.First)
	}
	return fmt.Sprintf("ranks %d-%d", p.First, p.First+p.Procs-1)
}

// Answer returns who answered a command of impi-node for a site, or why there was no answer.
func (p *SiteState) Answer(command string) string {
	switch {
	case !p.Own:
		return "another MPI"
	case p.Lost != nil:
		return p.Lost.Since(time.Now())
	case p.NotAsked != "":
		return "elsewhere, " + p.NotAsked
	case !p.Here && p.State == "" && p.Problem != "":
		return "elsewhere: " + p.Problem
	case !p.Here && p.State == "":
		return fmt.Sprintf("elsewhere, or another user's: run impi-node %s there too", command)
	case len(p.Nodes) > 0:
		return p.nodes()
	case p.Problem != "":
		return fmt.Sprintf("node %d: %s", p.PID, p.Problem)
	}
	if !p.Here {
		return "elsewhere, " + string(p.State)
	}
	return fmt.Sprintf("node %d %s", p.PID, p.State)
}

// nodes says how many nodes of a site with one for each host answered, and why the others did not.
func (p *SiteState) nodes() string {
	answered := 0
	var s []string
	for _, n := range p.Nodes {
		switch {
		case n.Lost != nil:
			s = append(s, "host "+n.Host+" "+n.Lost.Since(time.Now()))
		case n.Problem == "":
			answered++
		}
	}
	if answered > 0 {
		s = append([]string{fmt.Sprintf("%d nodes %s", answered, p.State)}, s...)
	}
	if p.Problem != "" {
		s = append(s, p.Problem)
	}
	return strings.Join(s, "; ")
}

func (p *SiteState) waits() string {
	if len(p.Ranks) == 0 {
		return ""
	}
	states := make(map[string]int)
	var order []string
	budget, setting, looks := time.Duration(-1), "", ""
	for _, r := range p.Ranks {
		setting, looks = cmp.Or(setting, r.Wait.Setting), cmp.Or(looks, r.Wait.ProgressText())
		state := cmp.Or(r.Wait.State, string(r.State))
		switch {
		case r.State == ProcLost:
			state = string(ProcLost)
		case r.Silent != "":
			state = "silent"
		default:
			budget = r.Wait.Budget
		}
		if states[state]++; states[state] == 1 {
			order = append(order, state)
		}
		if r.Wait.Oversubscribed {
			if states["oversubscribed"]++; states["oversubscribed"] == 1 {
				order = append(order, "oversubscribed")
			}
		}
	}
	var now []string
	for _, s := range order {
		now = append(now, fmt.Sprintf("%d %s", states[s], s))
	}
	if looks != "" {
		looks += " while computing; "
	}
	return fmt.Sprintf("wait %s: %s; %snow %s", cmp.Or(setting, "not known"), strategy(budget), looks, strings.Join(now, ", "))
}

// ProgressText returns how often a proc makes progress while the program computes, as the predicate
// of a sentence; "" if it does not.
func (w Waiting) ProgressText() string {
	if w.Progress <= 0 {
		return ""
	}
	return fmt.Sprintf("looks after messages every %s", strings.ReplaceAll(w.Progress.String(), "µ", "u"))
}

func strategy(budget time.Duration) string {
	switch {
	case budget < 0:
		return "not known"
	case budget == 0:
		return "sleep at once"
	}
	return fmt.Sprintf("poll %s, then sleep", strings.ReplaceAll(budget.String(), "µ", "u"))
}

func writePairs(w io.Writer, j *Job, s Style) {
	var t table
	t.add("RANKS", "TRANSPORT", "DATA PLANE", "HALF TRIP", "RATE", "MESSAGES > / <", "BYTES > / <", "UNDER WAY", "RESUMES", "STATE")
	var legend []string
	estimated, channels := false, false
	for i := range j.Pairs {
		p := &j.Pairs[i]
		half, rate := p.speed()
		estimated = estimated || strings.HasSuffix(half, "*")
		channels = channels || strings.HasPrefix(half, ">")
		t.add(p.ends(), cmp.Or(p.Transport, "-"), cmp.Or(p.Plane, "-"), half, rate,
			both(p.AToB.Messages, p.BToA.Messages, ""), both(p.AToB.Bytes, p.BToA.Bytes, "B"), p.left(), fmt.Sprint(p.Resumes), p.state(s.Now))
		if picture, meaning := p.draw(); meaning != "" && !slices.Contains(legend, picture+" "+meaning) {
			legend = append(legend, picture+" "+meaning)
		}
	}
	if len(j.Pairs) > 0 {
		t.write(w, "  ")
		fmt.Fprintln(w)
	}
	if estimated {
		legend = append(legend, "* half of the transport's estimate: -measure measures it")
	}
	if channels {
		legend = append(legend, "> the agents' channel alone")
	}
	if len(legend) > 0 {
		fmt.Fprintf(w, "  %s\n", strings.Join(legend, "   "))
	}
	writeRest(w, j)
}

func writeRest(w io.Writer, j *Job) {
	if j.Unused > 0 {
		fmt.Fprintf(w, "  %d more pairs have sent nothing to each other: -all shows them\n", j.Unused)
	}
	if j.Left > 0 {
		fmt.Fprintf(w, "  %d more pairs are left out: a node tells of %d at most\n", j.Left, MaxViews)
	}
	var problems groups
	for i := range j.Pairs {
		if p := &j.Pairs[i]; p.Speed != nil && p.Speed.Problem != "" {
			problems.add(p.Speed.Problem, p)
		}
	}
	problems.each(func(pairs, problem string) { fmt.Fprintf(w, "  %s: %s\n", pairs, problem) })
	if len(j.Pairs) == 0 && j.Unused == 0 {
		fmt.Fprintln(w, "  no pairs are known yet: the sites have not met, or no node answers")
	}
}

func (p *Pair) left() string {
	switch {
	case p.State != StateLinked && p.State != StateLost:
		return "-"
	case p.AToB.UnderWay == nil || p.BToA.UnderWay == nil:
		return "?"
	}
	return quantity.Bytes(*p.AToB.UnderWay + *p.BToA.UnderWay)
}

func (p *Pair) speed() (half, rate string) {
	half, rate = "-", "-"
	if p.Speed == nil || p.Speed.HalfTrip == 0 {
		return half, rate
	}
	half = Duration(p.Speed.HalfTrip)
	switch p.Speed.How {
	case HowKernel:
		half += "*"
	case HowChannel:
		half = "> " + half + "*"
	}
	if p.Speed.Rate > 0 {
		rate = quantity.Text(p.Speed.Rate, "B/s")
	}
	return half, rate
}

func (s *Speed) describe() string {
	return cmp.Or(s.Problem, fmt.Sprintf("it can be reached: %s, %s", Duration(s.HalfTrip), quantity.Text(s.Rate, "B/s")))
}

func (p *Pair) state(now time.Time) string {
	s := string(p.State)
	if a := age(p.Since, now); a != "" && p.State != StateEnded { // of an ended link only the time when it was made is known
		s += " " + a
	}
	return s
}

func writeAdvice(w io.Writer, j *Job) {
	var all groups
	for i := range j.Pairs {
		for _, s := range j.Pairs[i].Faster {
			all.add(s, &j.Pairs[i])
		}
	}
	if len(all.order) > 0 {
		fmt.Fprint(w, "\n  faster:\n")
	}
	all.each(func(pairs, advice string) { fmt.Fprintf(w, "    %s\n      %s\n", pairs, advice) })
	if len(all.order) > 0 {
		fmt.Fprint(w, "    (what is said of prefer is for new links after impi-node reload; all else, and links that are there, need a restart of the job)\n")
	}
}

type groups struct {
	pairs map[string][]string
	order []string
}

func (g *groups) add(text string, p *Pair) {
	if g.pairs == nil {
		g.pairs = make(map[string][]string)
	}
	if g.pairs[text] == nil {
		g.order = append(g.order, text)
	}
	g.pairs[text] = append(g.pairs[text], p.ends())
}

// each calls f with each text and its pairs, in the order of their first pair.
func (g *groups) each(f func(pairs, text string)) {
	for _, s := range g.order {
		f(few(g.pairs[s]), s)
	}
}

func few(pairs []string) string {
	const shown = 6
	if len(pairs) <= shown {
		return strings.Join(pairs, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(pairs[:shown], ", "), len(pairs)-shown)
}
