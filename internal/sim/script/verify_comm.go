package script

import "fmt"

// contexts judges the communicators: rank, size and context ID must be those of
// the model, which follows IMPI's rule, and whatever the rule, no member may have
// two communicators with a context ID in common.
func (v *verifier) contexts() error {
	index := make([]map[string]Membership, len(v.byRank))
	for r, rec := range v.byRank {
		index[r] = map[string]Membership{}
		if rec == nil {
			continue
		}
		seen := &Record{}
		for _, m := range rec.Comms {
			if err := seen.claim(m); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
			seen.Comms = append(seen.Comms, m)
			if _, twice := index[r][m.Name]; twice {
				return mismatch("rank %d has got communicator %s twice", r, m.Name)
			}
			index[r][m.Name] = m
		}
	}
	for _, g := range v.comms.all {
		if v.comms.self(g) {
			continue
		}
		agreed, known := g.context, !v.comms.several()
		for _, r := range g.all() {
			m, there := index[r][g.name]
			delete(index[r], g.name)
			own, _ := g.sides(r)
			if there && !known {
				agreed, known = m.Context, true
			}
			switch {
			case !there && v.byRank[r] != nil && v.byRank[r].Ended:
				return mismatch("rank %d has not got communicator %s", r, g.name)
			case there && (m.Rank != g.rank(r) || m.Size != len(own)):
				return mismatch("rank %d is %d of %d in communicator %s, not %d of %d", r, m.Rank, m.Size, g.name, g.rank(r), len(own))
			case there && m.Context != agreed:
				return mismatch("rank %d: communicator %s has context %d, not %d", r, g.name, m.Context, agreed)
			}
		}
	}
	for r, left := range index {
		for name := range left {
			return mismatch("rank %d has got communicator %s, which it is not in", r, name)
		}
	}
	return nil
}
