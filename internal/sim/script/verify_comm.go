package script

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
		for _, m := range rec.Comms {
			if _, twice := index[r][m.Name]; twice {
				return mismatch("rank %d has got communicator %s twice", r, m.Name)
			}
			index[r][m.Name] = m
		}
		if err := rec.distinct(v.a.p.Steps); err != nil {
			return err
		}
	}
	for _, g := range v.comms.all {
		for rank, r := range g.members {
			m, there := index[r][g.name]
			delete(index[r], g.name)
			switch {
			case !there && v.byRank[r] != nil && v.byRank[r].Ended:
				return mismatch("rank %d has not got communicator %s", r, g.name)
			case there && (m.Rank != rank || m.Size != len(g.members)):
				return mismatch("rank %d is %d of %d in communicator %s, not %d of %d", r, m.Rank, m.Size, g.name, rank, len(g.members))
			case there && m.Context != g.context:
				return mismatch("rank %d: communicator %s has context %d, not %d", r, g.name, m.Context, g.context)
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

// distinct looks at the context IDs of a rank's communicators while they live.
func (rec *Record) distinct(steps []Step) error {
	owner := map[uint64]string{2: "MPI_COMM_SELF", 3: "MPI_COMM_SELF"}
	contexts := map[string]uint64{}
	made := 0
	for i := -1; i < len(steps); i++ {
		if i >= 0 {
			if f, ok := steps[i].(Free); ok {
				delete(owner, contexts[f.Comm])
				delete(owner, contexts[f.Comm]+1)
			}
		}
		for ; made < len(rec.Comms) && rec.Comms[made].Step == i; made++ {
			m := rec.Comms[made]
			for _, id := range []uint64{m.Context, m.Context + 1} {
				if owner[id] != "" {
					return mismatch("rank %d: communicators %s and %s have context %d", rec.Rank, owner[id], m.Name, id)
				}
				owner[id] = m.Name
			}
			contexts[m.Name] = m.Context
		}
	}
	return nil
}
