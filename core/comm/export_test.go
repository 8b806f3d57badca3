package comm

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
