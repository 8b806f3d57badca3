package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/openimpi/impi/internal/links"
)

func write(to io.Writer, r *Report) {
	var w strings.Builder
	for i := range r.Jobs {
		if i > 0 {
			fmt.Fprintln(&w)
		}
		writeJob(&w, &r.Jobs[i])
	}
	if len(r.Jobs) > 0 && len(r.Ended) > 0 {
		fmt.Fprintln(&w)
	}
	for i := range r.Ended {
		fmt.Fprintln(&w, oneLine(r.Ended[i].String()))
	}
	_, _ = io.WriteString(to, plain(w.String()))
}

// plain takes out what a terminal would obey: programs and other sites choose names.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func oneLine(s string) string { return strings.ReplaceAll(plain(s), "\n", "?") }

func writeJob(w io.Writer, j *Job) {
	fmt.Fprintf(w, "job %s", oneLine(j.Name))
	if j.ID != "" {
		fmt.Fprintf(w, "  (%s)", j.ID)
	}
	fmt.Fprint(w, "\n")
	for i := range j.Sites {
		p := &j.Sites[i]
		fmt.Fprintf(w, "\n  %s\n", oneLine(join("  ", "site "+p.Label(), p.RankText(), onlyHost(p), p.Answer("status"), waitsFor(p), plugins(p))))
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		for k := range p.Ranks {
			x := &p.Ranks[k]
			fmt.Fprintf(t, "    %s\t%s%s\t%s\n", label(x), hostOf(p, x), pid(x), does(x))
		}
		_ = t.Flush()
	}
	for i := range j.Spares {
		fmt.Fprintf(w, "\n  %s\n", oneLine(j.Spares[i].Text(time.Now())))
	}
	for _, s := range servers(j, time.Now()) {
		fmt.Fprintf(w, "\n  %s\n", oneLine(s))
	}
	if s := linksInShort(j); s != "" {
		fmt.Fprintf(w, "\n  links: %s\n", s)
	}
	if k := links.CompressedBytesOf(&j.Job); k != nil {
		fmt.Fprintf(w, "  compressed: %s\n", links.CompressionText(k.Sent, k.SentCompressed))
	}
	if s := underWayInShort(j); s != "" {
		fmt.Fprintf(w, "  under way: %s\n", s)
	}
	lines := j.lines
	if lines == nil {
		lines = linesOf(j, nil, 0)
	}
	writeLines(w, lines)
	writeUnderWay(w, j.UnderWay)
	if j.Deadlock != nil {
		writeDeadlock(w, j.Deadlock)
	}
	writeElsewhere(w, j.Elsewhere)
	if silent := unheard(&j.Job); len(silent) > 0 {
		fmt.Fprintf(w, "\n  all procs that are known of wait for others; whether that is a deadlock depends on %s, of which nothing is known\n", ranksOf(silent))
	}
}

func ranksOf(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return "ranks " + few(ranks)
}

// servers says which sites are connected with the job's server, and since when others are not.
func servers(j *Job, now time.Time) (list []string) {
	var order []string
	said := make(map[string][]string)
	at := make(map[string]string)
	for i := range j.Sites {
		s := j.Sites[i].Server
		if s == nil {
			continue
		}
		name := "server " + s.Address
		switch {
		case s.Embedded:
			name += ", in the node of site " + j.Sites[i].Label()
		case s.Ours:
			name += ", in a node or launcher of the job"
		case len(s.Others) > 0:
			name += " (not needed: " + strings.Join(s.Others, ", ") + ")"
		}
		if at[s.Address] == "" || s.Embedded {
			at[s.Address] = name
		}
		if !slices.Contains(order, s.Address) {
			order = append(order, s.Address)
		}
		state := j.Sites[i].Label() + " is connected"
		if !s.DisconnectedSince.IsZero() {
			state = fmt.Sprintf("%s is not connected since %s, %s ago, and dials it again", j.Sites[i].Label(), s.DisconnectedSince.Format(time.TimeOnly), ago(now.Sub(s.DisconnectedSince)))
		}
		if !s.Lost.IsZero() {
			state = fmt.Sprintf("%s has lost it since %s, %s ago, and goes on without it", j.Sites[i].Label(), s.Lost.Format(time.TimeOnly), ago(now.Sub(s.Lost)))
		}
		if s.Unknown {
			state = "whether " + j.Sites[i].Label() + " is connected is not known, as its node does not answer"
		}
		said[s.Address] = append(said[s.Address], state)
	}
	for _, a := range order {
		list = append(list, at[a]+": "+strings.Join(said[a], "; "))
	}
	return list
}

// join joins what is not empty.
func join(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), between)
}

// onlyHost returns the address of a site's host if it has only one; with several, each proc has its
// own.
func onlyHost(p *links.SiteState) string {
	if len(p.Hosts) != 1 {
		return ""
	}
	return p.Hosts[0]
}

func waitsFor(p *links.SiteState) string {
	if p.Waits == "" {
		return ""
	}
	return "waits for " + p.Waits
}

// plugins names the plugins that do more than just run: those in another state, drained or
// restarted.
func plugins(p *links.SiteState) string {
	var s []string
	for _, t := range p.Transports {
		on := ""
		if t.Host != "" {
			on = " on " + t.Host
		}
		if t.State != "healthy" {
			s = append(s, fmt.Sprintf("plugin %s%s %s", t.Name, on, t.State))
		}
		if t.Drained {
			s = append(s, fmt.Sprintf("%s%s is drained", t.Name, on))
		}
		if t.Starts > 1 {
			s = append(s, fmt.Sprintf("plugin %s%s started %d times", t.Name, on, t.Starts))
		}
	}
	return strings.Join(s, ", ")
}

func label(p *links.Proc) string {
	if p.Rank < 0 {
		return "no rank yet"
	}
	return fmt.Sprintf("rank %d", p.Rank)
}

func pid(p *links.Proc) string {
	if p.PID == 0 { // its node does not answer
		return "pid not told"
	}
	return "pid " + strconv.Itoa(p.PID)
}

// hostOf returns the column with the address of a proc's host; there is none if the site has one
// host.
func hostOf(p *links.SiteState, x *links.Proc) string {
	if x.Address != "" {
		return oneLine(x.Address) + "\t"
	}
	if len(p.Agents) < 2 && len(p.Hosts) < 2 {
		return ""
	}
	for _, a := range p.Agents {
		if a.Rank == x.Host {
			return oneLine(a.Address) + "\t"
		}
	}
	return ""
}

// silent is about a proc that has not answered, since when if that is known.
func silent(p *links.Proc) string {
	if p.Since.IsZero() {
		return "silent: " + oneLine(p.Silent)
	}
	return fmt.Sprintf("silent since %s, %s ago: %s", p.Since.Format(time.TimeOnly), ago(time.Since(p.Since)), oneLine(p.Silent))
}

func does(p *links.Proc) string {
	switch {
	case p.State == links.ProcLost:
		return oneLine(p.Lost.OfProc(time.Now()))
	case p.State == links.ProcEnded:
		return oneLine(p.Ended)
	case p.State == links.ProcNotAsked:
		return oneLine(p.Silent)
	case p.State == links.ProcNotTold && !p.Since.IsZero():
		return silent(p)
	case p.State == links.ProcNotTold:
		return "not told: " + oneLine(p.Silent)
	case p.State != links.ProcRunning && p.State != "": // older nodes do not report it
		return string(p.State)
	case p.Silent != "":
		return silent(p)
	case p.Blocked != nil:
		return wait(p.Blocked)
	}
	s := cmp.Or(map[string]string{"computing": "computing", "polling": "waits in MPI, since a moment"}[p.Wait.State], "running")
	if looks := p.Wait.ProgressText(); looks != "" && p.Wait.State == "computing" {
		s += ", " + looks
	}
	return s
}

func wait(b *links.Blocked) string {
	return strings.TrimSpace("blocked for " + ago(b.Time) + " " + waitsIn(b))
}

// waitsIn says in which call a proc waits, and for what; it returns "" if neither is known.
func waitsIn(b *links.Blocked) (s string) {
	var calls, at, partners []string
	for _, c := range b.Calls {
		calls = append(calls, oneLine(c.Name))
		if c.At != "" {
			at = append(at, oneLine(c.At))
		}
	}
	slices.Sort(calls)
	for _, p := range b.Partners {
		partners = append(partners, wanted(p))
	}
	if partners = slices.Compact(partners); len(partners) > 4 {
		partners = append(partners[:4], fmt.Sprintf("%d more", len(partners)-4+b.Left))
	}
	if len(calls) > 0 {
		s = "in " + strings.Join(slices.Compact(calls), ", ")
	}
	if len(partners) > 0 {
		s += " (" + strings.Join(partners, "; ") + ")"
	}
	if len(at) > 0 {
		s += " at " + strings.Join(at, ", ")
	}
	if b.Computes {
		s += "; other threads compute"
	}
	return strings.TrimPrefix(s, "; ")
}

func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func wanted(p links.Partner) string {
	in := ""
	if p.Comm != "" {
		in = " in " + oneLine(p.Comm)
	}
	tag := fmt.Sprintf("tag %d", p.Tag)
	if p.Tag < 0 {
		tag = "any tag"
	}
	who := fmt.Sprintf("rank %d", p.Peer)
	if p.OtherWorld {
		who = "a proc of another world"
	}
	switch {
	case p.What == links.WantsPost:
		return who + " to post" + in
	case p.What == links.WantsComplete:
		return who + " to complete" + in
	case p.What == links.WantsWindow:
		return who + " to serve operations" + in
	case p.What == links.WantsLock && len(p.Holders) > 0:
		held := ", which rank " + few(p.Holders) + " holds"
		if len(p.Holders) > 1 {
			held = ", which ranks " + few(p.Holders) + " hold"
		}
		return "the lock of " + who + in + held
	case p.What == links.WantsLock:
		return "the lock of " + who + in
	case p.What == "collective":
		return who + in
	case p.Any:
		return "from any rank, " + tag + in
	case p.What == "recv":
		return fmt.Sprintf("from %s, %s%s", who, tag, in)
	case p.Why == whySyncAck:
		return fmt.Sprintf("to %s, %s%s, which has not begun to receive", who, tag, in)
	}
	return fmt.Sprintf("to %s, %s%s", who, tag, in)
}

func linksInShort(j *Job) string {
	count := make(map[string]int)
	add := func(state links.State, transport string, n int) {
		switch state {
		case links.StateLinked:
			count[cmp.Or(transport, "native")] += n
		case links.StateUnused:
		case links.StateAgents:
			count["through the agents"] += n
		default:
			count[string(state)] += n
		}
	}
	hosts, more := LinksOfHosts(&j.Job)
	for i := range j.Pairs {
		if p := &j.Pairs[i]; !more {
			add(p.State, p.Transport, 1)
		}
	}
	for i := range hosts {
		for _, l := range hosts[i].Links {
			if more {
				add(l.State, l.Transport, l.Pairs)
			}
		}
	}
	var s []string
	for name, n := range count {
		s = append(s, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(s)
	if len(s) == 0 {
		return ""
	}
	return strings.Join(s, ", ") + " (impi-node links shows them)"
}

func writeDeadlock(w io.Writer, d *Deadlock) {
	if len(d.Jobs) > 0 {
		fmt.Fprintf(w, "\n  probable deadlock over %d worlds: all procs of %s wait for others, for %s\n", len(d.Jobs), oneLine(strings.Join(d.Jobs, " and ")), ago(d.For))
		if c := d.AcrossText(" --> "); c != "" {
			fmt.Fprintf(w, "    %s\n", c)
		}
		fmt.Fprint(w, "    but what is under way between the worlds is not known\n")
		return
	}
	fmt.Fprintf(w, "\n  probable deadlock: all procs wait for others, for %s\n", ago(d.For))
	if d.UnreportedPairs > 0 {
		fmt.Fprintf(w, "    but of %d pairs of procs nothing is told, between which messages may be under way\n", d.UnreportedPairs)
	}
	if len(d.Cycle) == 0 {
		return
	}
	var s []string
	for _, r := range append(d.Cycle, d.Cycle[0]) {
		s = append(s, fmt.Sprintf("rank %d", r))
	}
	fmt.Fprintf(w, "    %s\n", strings.Join(s, " --> "))
}
