package rma

// Arrivals counts notices of other procs that are taken from all of a group at a
// time. Those of the next epoch may come before this one's are taken. The zero
// value has none.
type Arrivals struct{ count map[int]int }

// Add counts a notice of a proc.
func (a *Arrivals) Add(rank int) {
	if a.count == nil {
		a.count = make(map[int]int)
	}
	a.count[rank]++
}

// Missing is a rank that no notice is there of, if there is one.
func (a *Arrivals) Missing(ranks []int) (rank int, missing bool) {
	for _, r := range ranks {
		if a.count[r] == 0 {
			return r, true
		}
	}
	return 0, false
}

// Take takes one notice of each rank, if all are there.
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
