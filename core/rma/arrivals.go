package rma

// Arrivals counts notices (Post, Complete) from other procs, which are consumed for all ranks of a
// group at once. Notices for the next epoch may arrive before those of this one are consumed, as
// Post and Complete do not wait for the other side (MPI-4.1, 12.5.2). The zero value is empty.
type Arrivals struct{ count map[int]int }

// Add counts a notice from a rank.
func (a *Arrivals) Add(rank int) {
	if a.count == nil {
		a.count = make(map[int]int)
	}
	a.count[rank]++
}

// Missing returns one of ranks from which no notice has come, if there is one.
func (a *Arrivals) Missing(ranks []int) (rank int, missing bool) {
	for _, r := range ranks {
		if a.count[r] == 0 {
			return r, true
		}
	}
	return 0, false
}

// AllMissing returns those of ranks from which no notice has come.
func (a *Arrivals) AllMissing(ranks []int) (missing []int) {
	for _, r := range ranks {
		if a.count[r] == 0 {
			missing = append(missing, r)
		}
	}
	return missing
}

// Take consumes one notice from each rank if all are there, and reports whether it did.
func (a *Arrivals) Take(ranks []int) bool {
	if _, missing := a.Missing(ranks); missing {
		return false
	}
	for _, r := range ranks {
		if a.count[r]--; a.count[r] == 0 {
			delete(a.count, r)
		}
	}
	return true
}
