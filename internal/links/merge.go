package links

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

type merger struct {
	job   *Job
	pairs map[[2]int]*Pair
}

func (m *merger) add(v View) {
	a, b := min(v.Local, v.Peer), max(v.Local, v.Peer)
	p := m.pairs[[2]int{a, b}]
	if p == nil {
		p = &Pair{A: a, B: b, SiteA: m.job.siteOf(a), SiteB: m.job.siteOf(b), Dialler: NoRank}
		m.pairs[[2]int{a, b}] = p
	}
	p.Views = append(p.Views, v)
}

func (j *Job) siteOf(rank int) string {
	for _, s := range j.Sites {
		if rank >= s.First && rank < s.First+s.Procs {
			return s.Label()
		}
	}
	return "?"
}

// Label returns the name of a site, also of one that the job file does not name.
func (s Site) Label() string {
	return cmp.Or(s.Name, "client "+itoa(s.Client))
}

func rankOf(s State) int {
	return slices.Index([]State{StateUnused, StateOpening, StateWaiting, StateAgents, StateLinked, StateLost, StateEnded}, s)
}

// finish sets what follows from both views. They may differ for a moment; then the later
// state counts.
func (p *Pair) finish() {
	slices.SortFunc(p.Views, func(a, b View) int { return a.Local - b.Local })
	p.State = StateUnused
	for _, v := range p.Views {
		if rankOf(v.State) > rankOf(p.State) || p.Transport == "" && v.State == p.State {
			p.State = v.State
			p.Transport, p.Plane, p.PlaneReason = v.Transport, v.Plane, v.PlaneReason
			p.Since = v.Since
		}
		p.Resumes = max(p.Resumes, v.Resumes)
	}
	for _, v := range p.Views {
		switch {
		case v.Transport == "", v.Native:
		case v.Dialled:
			p.Dialler = v.Local
		case p.Dialler == NoRank:
			p.Dialler = v.Peer
		}
		p.count(v)
	}
	p.Why = p.why()
}

// count uses the counters of one end. What it received counts as what the other sent, if
// that end did not report it.
func (p *Pair) count(v View) {
	if v.Traffic == nil {
		return
	}
	out, in := &p.AToB, &p.BToA
	if v.Local == p.B {
		out, in = in, out
	}
	messages, data := v.Traffic.Messages, v.Traffic.Data
	out.Messages, out.Data = &messages, &data
	if v.Traffic.Sent != nil {
		out.Bytes = v.Traffic.Sent
	}
	in.Bytes = cmp.Or(in.Bytes, v.Traffic.Received)
	if v.Traffic.RTT > 0 && p.Speed == nil && p.Transport != "" {
		p.Speed = &Speed{How: HowKernel, Measure: Measure{HalfTrip: v.Traffic.RTT / 2}}
	}
}

// byChannel estimates the speed of a pair whose packets go through the agents.
func (j *Job) byChannel(p *Pair) {
	if p.State != StateAgents {
		return
	}
	v := p.Views[0]
	for _, c := range j.Channels {
		there := c.From == v.LocalHost && c.To == v.PeerHost
		back := c.To == v.LocalHost && c.From == v.PeerHost
		if (there || back) && c.RTT > 0 {
			p.Speed = &Speed{How: HowChannel, Measure: Measure{HalfTrip: c.RTT / 2}}
			return
		}
	}
}

// end returns the view of the end that knows best why a pair is as it is: the one that
// dialled, or that has a reason.
func (p *Pair) end() *View {
	for i := range p.Views {
		if v := &p.Views[i]; v.Dialled || v.Transport == "" && v.Reason != "" && p.Transport == "" {
			return v
		}
	}
	return &p.Views[0]
}

func (p *Pair) why() string {
	v := p.end()
	switch p.State {
	case StateUnused:
		return "nothing has been sent yet: a link is made for the first message"
	case StateOpening:
		return "the transports are being tried"
	case StateWaiting:
		return "both ends dialled: the other one's link is on its way"
	case StateAgents:
		return v.Reason
	case StateLinked, StateLost, StateEnded: // the end that dialled knows the reason
	}
	if v.Native && len(v.Candidates) > 0 {
		return v.Candidates[0].Reason
	}
	if !v.Dialled {
		return fmt.Sprintf("rank %d's node chose it and did not say why", v.Peer)
	}
	var failed, passed []string
	for _, c := range v.Candidates {
		switch c.Verdict {
		case Chosen:
			return reasonOf(failed, passed)
		case Failed:
			failed = append(failed, c.Transport)
		case Excluded:
			passed = append(passed, c.Transport)
		case Lost, Possible: // these did not prevent the next transport
		}
	}
	return "it was chosen"
}

func reasonOf(failed, passed []string) string {
	switch {
	case len(failed) > 0:
		return fmt.Sprintf("tried first and failed: %s", list(failed))
	case len(passed) > 0:
		return fmt.Sprintf("the first of the route's prefer that fits the pair; these do not: %s", list(passed))
	}
	return "the first of the route's prefer"
}

func itoa(n int) string { return strconv.Itoa(n) }
