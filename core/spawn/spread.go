package spawn

import "slices"

// HostPart is what one host of a site starts of a part: CommandsOf makes the commands of it.
type HostPart struct {
	Host  int   `json:"host"`  // index among the hosts of its site
	Procs []int `json:"procs"` // number of procs, by command of the part
}

// CommandsOf returns the part of a host: the commands of p that it has procs of, with exactly these
// numbers of procs.
func (x *HostPart) CommandsOf(p *Part) *Part {
	q := &Part{World: p.World}
	for i, n := range x.Procs {
		if n == 0 {
			continue
		}
		c := p.Commands[i]
		c.Procs = n
		q.Commands = append(q.Commands, c)
	}
	return q
}

// spread divides procs among hosts. Each next one goes to the host that has the fewest spawned
// procs for its weight, the first of several. The procs of a host are in a row, and hosts are in
// the order in which they are given.
func spread(granted, hosts []int, load, weight func(host int) int) (hostParts []HostPart) {
	total := 0
	for _, n := range granted {
		total += n
	}
	counts := make([]int, len(hosts))
	for range total {
		best := -1
		for i, h := range hosts {
			if best < 0 || (load(h)+counts[i]+1)*weight(hosts[best]) < (load(hosts[best])+counts[best]+1)*weight(h) {
				best = i
			}
		}
		counts[best]++
	}
	left, c := slices.Clone(granted), 0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		x := HostPart{Host: hosts[i], Procs: make([]int, len(granted))}
		for n > 0 {
			k := min(n, left[c])
			x.Procs[c], left[c], n = x.Procs[c]+k, left[c]-k, n-k
			if left[c] == 0 {
				c++
			}
		}
		hostParts = append(hostParts, x)
	}
	return hostParts
}
