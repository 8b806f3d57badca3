package sim

// Missing lists the counters of a list that are 0.
func (c Coverage) Missing(counters []string) (names []string) {
	for _, name := range counters {
		if c[name] == 0 {
			names = append(names, name)
		}
	}
	return names
}

// Deadly reports whether one of the faults may end the job.
func (c *Case) Deadly() bool {
	for _, f := range c.Faults {
		if f.Kind.Deadly() {
			return true
		}
	}
	return false
}
