package links

import (
	"cmp"
	"slices"
)

// addSilent adds the procs of which no node tells, because their own does not answer, or could
// not be asked. As far as
// anybody knows, they are still there.
func (j *Job) addSilent() {
	first := 0 // host rank of a site's first host
	for i := range j.Sites {
		p := &j.Sites[i]
		if p.Own && (!p.Answered() || p.Lost != nil) {
			p.addSilent(first)
		}
		first += len(p.Hosts)
	}
}

func (p *SiteState) addSilent(first int) {
	told := make(map[int]bool, len(p.Ranks))
	for i := range p.Ranks {
		told[p.Ranks[i].Rank] = true
	}
	for rank := p.First; rank < p.First+p.Procs; rank++ {
		if told[rank] {
			continue
		}
		x := Proc{Rank: rank, Host: -1, State: ProcNotTold, Silent: p.Problem, Since: p.Since, away: true}
		if p.NotAsked != "" {
			x.State, x.Silent = ProcNotAsked, p.NotAsked
		}
		if len(p.PIDs) == p.Procs && IsProcessID(int64(p.PIDs[rank-p.First])) { // older nodes send identities as well
			x.PID = p.PIDs[rank-p.First]
		}
		if pid := p.pids[rank]; pid > 0 {
			x.PID, x.away = pid, false
		}
		if h := p.hostOf(rank); h >= 0 {
			x.Host, x.Address = first+h, p.Hosts[h]
			if n := p.node(h); n != nil && n.Problem != "" {
				x.Silent, x.Since = n.Problem, n.Since
			}
		}
		p.Ranks = append(p.Ranks, x)
	}
	slices.SortStableFunc(p.Ranks, func(a, b Proc) int { return cmp.Compare(a.Rank, b.Rank) })
}

// hostOf is the index of the site's host that has a rank, or -1 if that is not known.
func (s *Site) hostOf(rank int) int {
	if len(s.Hosts) == 1 {
		return 0
	}
	if len(s.HostProcs) != len(s.Hosts) {
		return -1 // an older node
	}
	rank -= s.First
	for h, n := range s.HostProcs {
		if rank < n {
			return h
		}
		rank -= n
	}
	return -1
}

// node is the node of one of the site's hosts, or nil if none is known.
func (p *SiteState) node(host int) *HostNode {
	if i := slices.IndexFunc(p.Nodes, func(n HostNode) bool { return n.Number == host }); i >= 0 {
		return &p.Nodes[i]
	}
	return nil
}

// HostProblem returns why the node of one of the site's hosts, by the host's number, does not
// answer, or "" if it does or the host has no node of its own.
func (p *SiteState) HostProblem(host int) string {
	if n := p.node(host); n != nil {
		return n.Problem
	}
	return ""
}
