package links

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/quantity"
)

func writeProcs(w io.Writer, j *Job) {
	var t table
	for _, s := range j.Sites {
		for _, h := range s.Agents {
			t.add("agent "+h.Address, fmt.Sprintf("pid %d", cmp.Or(h.pid, s.PID)), wait(h.Wait), "")
		}
		for _, p := range s.Ranks {
			if p.Silent != "" {
				pid := process(p.PID)
				if p.PID == 0 {
					pid = "pid not told"
				}
				t.add(fmt.Sprintf("rank %d", p.Rank), pid, p.Silent)
				continue
			}
			t.add(fmt.Sprintf("rank %d", p.Rank), fmt.Sprintf("pid %d", p.PID), wait(p.Wait), "to and from the agent "+both(p.Agent.Sent, p.Agent.Received, "B"))
		}
		for _, x := range s.Transports {
			t.add("plugin "+x.label(), process(x.PID), fmt.Sprintf("%s, %d links made", x.State, x.Links), x.Error)
		}
	}
	fmt.Fprintln(w)
	t.write(w, "  ")
	writeBoards(w, j)
	writeCollectives(w, j)
	writePlugins(w, j)
	writeChannelReasons(w, j)
}

func writeCollectives(w io.Writer, j *Job) {
	own := slices.DeleteFunc(slices.Clone(j.Sites), func(s SiteState) bool { return s.Collectives == nil })
	if len(own) < 2 {
		return
	}
	c := own[0].Collectives
	how := "up and down a tree"
	if c.Direct > 0 {
		how = fmt.Sprintf("all at once up to %d sites, Allreduce of %s and more part by part", c.Direct, quantity.Bytes(uint64(c.DirectLong)))
	}
	fmt.Fprintf(w, "  collective operations between sites: %s; %s\n", how, c.Why)
}

func writeBoards(w io.Writer, j *Job) {
	for _, s := range j.Sites {
		for _, h := range s.Agents {
			how := "by a board, memory that they share"
			if h.NoBoard != "" {
				how = "by messages: " + h.NoBoard
			}
			fmt.Fprintf(w, "  collective operations among the procs of host %d: %s\n", h.Rank, how)
		}
	}
}

// label names a plugin, with its host if there are several.
func (x Transport) label() string {
	if x.Host == "" {
		return x.Name
	}
	return x.Name + " on " + x.Host
}

// life says how often a plugin was started; "" if once, and it still runs.
func (x Transport) life() string {
	if x.Starts <= 1 && x.Failures == 0 {
		return ""
	}
	s := fmt.Sprintf("was started %d times, %d failures in a row", x.Starts, x.Failures)
	if !x.NextTry.IsZero() {
		s += ", not again before " + x.NextTry.Format("15:04:05.000")
	}
	return s
}

func writePlugins(w io.Writer, j *Job) {
	for _, s := range j.Sites {
		for _, x := range s.Transports {
			head := fmt.Sprintf("  plugin %s of site %s", x.label(), s.Name)
			if life := x.life(); life != "" {
				fmt.Fprintf(w, "%s %s\n", head, life)
			}
			if u := x.Usage; u != nil {
				fmt.Fprintf(w, "%s takes %s (%s of its own), %v CPU, %d descriptors, %d threads\n",
					head, quantity.Text(float64(u.Resident), "B"), quantity.Text(float64(u.Own), "B"), u.CPU, u.Descriptors, u.Threads)
			}
			if len(x.Lacks) > 0 {
				fmt.Fprintf(w, "%s speaks version %d of the protocol and lacks %s\n", head, x.Protocol, strings.Join(x.Lacks, ", "))
			}
			if x.Problem != "" {
				fmt.Fprintf(w, "%s is degraded: %s\n", head, x.Problem)
			}
		}
	}
}

func process(pid int) string {
	if pid == 0 {
		return "no process"
	}
	return fmt.Sprintf("pid %d", pid)
}

func wait(w Waiting) string {
	looks := w.ProgressText()
	if looks != "" {
		looks = "; " + looks + " while computing"
	}
	if w.State == "" && w.Budget == 0 && w.Setting != "0s" {
		return "wait " + w.Setting + looks
	}
	s := fmt.Sprintf("wait %s: %s%s", w.Setting, strategy(w.Budget), looks)
	if w.State != "" {
		s += "; now " + w.State
	}
	if w.Oversubscribed {
		s += ", oversubscribed: does not poll"
	}
	return s
}

// writeReasons shows why each pair is linked as it is; pairs with the same reasons are
// shown together.
func writeReasons(w io.Writer, j *Job) {
	var all groups
	for i := range j.Pairs {
		var b strings.Builder
		j.Pairs[i].reasons(&b, j)
		all.add(b.String(), &j.Pairs[i])
	}
	all.each(func(pairs, reasons string) { fmt.Fprintf(w, "\n  %s\n%s", pairs, reasons) })
}

// Explain writes why two procs are linked as they are. It reports whether the job has the pair.
func (j *Job) Explain(w io.Writer, a, b int) bool {
	for i := range j.Pairs {
		if p := &j.Pairs[i]; p.A == min(a, b) && p.B == max(a, b) {
			p.reasons(w, j)
			return true
		}
	}
	return false
}

// ExplainHosts writes how two hosts are connected, and why their procs are linked as they are,
// pairs with the same reasons together. It returns these pairs of ranks.
func (j *Job) ExplainHosts(w io.Writer, a, b int) (pairs [][2]int) {
	for i := range j.Channels {
		if c := &j.Channels[i]; c.From == a && c.To == b || c.From == b && c.To == a {
			c.explain(w)
		}
	}
	var all groups
	for i := range j.Pairs {
		p := &j.Pairs[i]
		if len(p.Views) == 0 || !p.Views[0].joins(a, b) {
			continue
		}
		var text strings.Builder
		p.reasons(&text, j)
		all.add(text.String(), p)
		pairs = append(pairs, [2]int{p.A, p.B})
	}
	all.each(func(pairs, reasons string) { fmt.Fprintf(w, "\n%s\n%s", pairs, reasons) })
	return pairs
}

func (v *View) joins(a, b int) bool {
	return v.LocalHost == a && v.PeerHost == b || v.LocalHost == b && v.PeerHost == a
}

func (c *Channel) explain(w io.Writer) {
	fmt.Fprintf(w, "channel of %s: %s", c.ends(), c.State)
	if c.Transport != "" {
		fmt.Fprintf(w, " by %s, data plane %s", c.Transport, c.Plane)
	}
	if c.Sent != nil || c.Received != nil {
		fmt.Fprintf(w, ", %s sent and received", both(c.Sent, c.Received, "B"))
	}
	if c.RTT > 0 {
		fmt.Fprintf(w, ", half trip %s", Duration(c.RTT/2))
	}
	if c.Resumable {
		fmt.Fprintf(w, ", %d resumes", c.Resumes)
	}
	if c.PlaneReason != "" {
		fmt.Fprintf(w, "\n    data plane %s: %s", c.Plane, c.PlaneReason)
	}
	if c.Compressed != nil {
		fmt.Fprintf(w, "\n    compressed by host %d: %s", c.From, CompressionText(c.Compressed.Sent, c.Compressed.SentCompressed))
	}
	if c.Lost != "" {
		fmt.Fprintf(w, "\n    was lost: %s", c.Lost)
	}
	fmt.Fprintln(w)
}

func (p *Pair) reasons(w io.Writer, j *Job) {
	fmt.Fprintf(w, "    %s: %s\n", cmp.Or(p.Transport, string(p.State)), p.Why)
	if p.PlaneReason != "" {
		fmt.Fprintf(w, "    data plane %s: %s\n", p.Plane, p.PlaneReason)
	}
	p.compression(w)
	var ends []string // both usually report the same
	for _, v := range p.Views {
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", v.Route.describe())
		var t table
		for _, c := range v.Candidates {
			t.add(c.Transport, string(c.Verdict), c.reason())
		}
		t.write(&b, "      ")
		ends = append(ends, b.String())
	}
	for i, text := range ends {
		site, whose := j.siteOf(p.Views[i].Local), ""
		if i > 0 && text == ends[0] && site == j.siteOf(p.Views[0].Local) {
			continue
		}
		if len(ends) > 1 && text != ends[1-min(i, 1)] && site == j.siteOf(p.Views[1-min(i, 1)].Local) {
			whose = map[bool]string{true: " (end of the lower rank)", false: " (end of the higher rank)"}[p.Views[i].Local == p.A]
		}
		fmt.Fprintf(w, "    site %s%s, %s", site, whose, text)
	}
}

func listed(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (r Route) describe() string {
	s := "the default route: "
	if r.Site != "" {
		s = fmt.Sprintf("route %q: ", r.Site)
	}
	s += "prefer " + listed(r.Prefer)
	if !r.Direct {
		s += ", direct = false"
	}
	if len(r.DataPlane) > 0 {
		s += ", data_plane " + listed(r.DataPlane)
	}
	if r.RequireTLS {
		s += ", require_tls"
	}
	if r.Closed {
		s += ", certificates and no require_tls = false"
	}
	if r.Compress != "" {
		s += ", compress " + r.Compress
	}
	if r.Precision != "" {
		s += ", precision " + r.Precision
	}
	return s
}

func (c Candidate) reason() string {
	s := c.Reason
	if c.Verdict == Failed && c.Address != "" {
		s += ", at " + c.Address
	}
	if c.Probe != nil {
		s += "; " + c.Probe.describe()
	}
	if c.Tries > 1 {
		s += fmt.Sprintf(", tried %d times", c.Tries)
	}
	return s
}
