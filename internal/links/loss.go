package links

import (
	"fmt"
	"time"
)

// Loss describes procs without which a job continues (survive = true), as a node has learned of
// them.
type Loss struct {
	First int       `json:"first_rank"`
	Last  int       `json:"last_rank"`
	Host  bool      `json:"host,omitempty"` // they are lost with their host and its node
	At    time.Time `json:"at"`             // when the node heard of it
	Why   string    `json:"why"`
}

// Since returns since when the procs are lost, and why.
func (l *Loss) Since(now time.Time) string { return l.when(now) + ": " + l.Why }

// OfProc is Since for a proc. It omits why a node is lost: the text about its site has that.
func (l *Loss) OfProc(now time.Time) string {
	if l.Host {
		return l.when(now) + ", with the node of its site"
	}
	return l.Since(now)
}

func (l *Loss) when(now time.Time) string {
	return fmt.Sprintf("lost since %s, %s ago", l.At.Format(time.TimeOnly), age(l.At, now))
}

// losses are the lost procs of a job by rank, as told by the node that was the first to hear of
// each.
func losses(found []FoundNode) map[int]*Loss {
	first := make(map[int]*Loss)
	for _, f := range found {
		if f.Node == nil {
			continue
		}
		for i := range f.Node.Lost {
			l := &f.Node.Lost[i]
			for r := l.First; r <= l.Last; r++ {
				if x := first[r]; x == nil || l.At.Before(x.At) {
					first[r] = l
				}
			}
		}
	}
	return first
}

// lose marks the sites that are lost, from which nobody expects an answer any more.
func (j *Job) lose(lost map[int]*Loss) {
	for i := range j.Sites {
		p := &j.Sites[i]
		all := p.Procs > 0
		for r := p.First; r < p.First+p.Procs; r++ {
			all = all && lost[r] != nil && lost[r].Host
		}
		if all {
			p.Lost, p.Problem, p.NotAsked, p.Since = lost[p.First], "", "", time.Time{}
		} else {
			p.loseHosts(lost)
		}
	}
}

func (p *SiteState) loseHosts(lost map[int]*Loss) {
	gone := false
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Number >= len(p.HostProcs) {
			continue
		}
		first := p.First
		for _, procs := range p.HostProcs[:n.Number] {
			first += procs
		}
		if l := lost[first]; l != nil && l.Host {
			n.Lost, n.Problem, n.Since, gone = l, "", time.Time{}, true
		}
	}
	if !gone {
		return
	}
	p.Problem, p.Since = "", time.Time{}
	for _, n := range p.Nodes {
		if n.Problem != "" {
			p.notAnswered(n)
		}
	}
}

// mark marks the lost procs, whatever their own node may say.
func (j *Job) mark(lost map[int]*Loss) {
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			if x := &j.Sites[i].Ranks[k]; lost[x.Rank] != nil {
				x.State, x.Lost, x.Silent, x.Blocked, x.Since = ProcLost, lost[x.Rank], "", nil, time.Time{}
			}
		}
	}
}
