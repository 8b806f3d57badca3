package comm

import "github.com/openimpi/impi/core/wire"

// PartnerClient returns the client of a process of either group.
func (c *Comm) PartnerClient(rank int) (client wire.ClientRank, ok bool) {
	p, ok := c.Partner(rank)
	if !ok {
		return 0, false
	}
	return c.spec.Clients.Of(p), true
}

// Procs lists the members in rank order.
func (g *Group) Procs() []Proc {
	procs := make([]Proc, 0, g.size)
	for p := range g.All() {
		procs = append(procs, p)
	}
	return procs
}

// Procs is the number of procs in the table.
func (t *Clients) Procs() int {
	if len(t.ranges) == 0 {
		return 0
	}
	return int(t.ranges[len(t.ranges)-1].end)
}

// Len returns how many keys exist.
func (k *Keys) Len() int {
	k.lock()
	defer k.unlock()
	return len(k.keys)
}
