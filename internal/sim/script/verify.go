package script

import "fmt"

// Verify judges what all ranks of a legal program have received. If ranks have failed, records may
// be missing or not Ended: what they contain is judged all the same, and their peers are excused
// for messages that they did not send. The error wraps ErrMismatch.
//
// Each message must have been delivered exactly once, to a receive that may get it, with the right
// status and contents, or be cancelled, but not both. Messages of one sender that the same receives
// may get must have arrived in the order of sending. Results of collective operations and
// communicators must be those of the model.
func Verify(p *Program, records []*Record) error {
	a, err := check(p)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrIllegal, err)
	}
	v := &verifier{
		a: a, comms: p.comms(), byRank: make([]*Record, p.Procs),
		got: map[int]*Delivery{}, cancelled: map[Req]bool{}, decided: map[Req]bool{},
	}
	for _, f := range []func() error{
		func() error { return v.collect(records) }, v.contexts, v.families, v.losses, v.results,
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

type verifier struct {
	a         *lives
	comms     *comms // communicators at the end of the program
	byRank    []*Record
	got       map[int]*Delivery // by the message whose receive it is
	cancelled map[Req]bool
	decided   map[Req]bool
}

func (v *verifier) collect(records []*Record) error {
	for _, rec := range records {
		if rec == nil {
			continue
		}
		if rec.Rank < 0 || rec.Rank >= len(v.byRank) || v.byRank[rec.Rank] != nil {
			return mismatch("there are two records of rank %d, or no such rank", rec.Rank)
		}
		v.byRank[rec.Rank] = rec
		for i := range rec.Deliveries {
			d := &rec.Deliveries[i]
			l := v.a.byID[d.Msg]
			if l == nil || l.m.To != rec.Rank {
				return mismatch("rank %d has received message %d, which is not for it", rec.Rank, d.Msg)
			}
			if v.got[d.Msg] != nil {
				return mismatch("rank %d: the receive of message %d has got two messages", rec.Rank, d.Msg)
			}
			v.got[d.Msg] = d
		}
		for _, c := range rec.Cancels {
			v.decided[c.Req], v.cancelled[c.Req] = true, c.Cancelled
		}
	}
	for _, s := range v.a.p.Steps {
		_, _, _ = v.comms.apply(s) // checked already
	}
	return nil
}

func (v *verifier) families() error {
	for _, f := range v.a.families {
		if f.wild() {
			if err := v.wild(f); err != nil {
				return err
			}
			continue
		}
		for _, l := range f.recvs {
			d := v.got[l.m.ID]
			if d == nil {
				continue
			}
			if err := d.against(l.m, v.source(l.m)); err != nil {
				return err
			}
			if l.m.content(d.Count).sum(d.Count) != d.Sum {
				return mismatch("message %d has other contents%s", l.m.ID, v.a.explain(d))
			}
		}
	}
	return nil
}

func (v *verifier) source(m *Message) int { return v.comms.byName[m.Comm].rank(m.From) }

// wild judges receives from any source: in the order in which they were started they must have got
// the messages of each sender in the order of sending.
func (v *verifier) wild(f *family) error {
	next := map[int]int{} // by source: index in f.sends to continue at
	sums := make([]uint64, len(f.sends))
	for i, s := range f.sends {
		sums[i] = s.m.content(s.m.Len).sum(s.m.Len)
	}
	is := func(i int, d *Delivery) bool {
		m := f.sends[i].m
		return v.source(m) == d.Source && m.Tag == d.Tag && m.Len == d.Count && sums[i] == d.Sum && !d.Truncated
	}
	for _, l := range f.recvs {
		d := v.got[l.m.ID]
		if d == nil {
			continue
		}
		i := next[d.Source]
		for i < len(f.sends) && !is(i, d) {
			i++
		}
		if i < len(f.sends) {
			next[d.Source] = i + 1
			continue
		}
		for i := range next[d.Source] {
			if is(i, d) {
				return mismatch("message %d was received by the receive of message %d: again, or after one that was sent later",
					f.sends[i].m.ID, l.m.ID)
			}
		}
		return mismatch("the receive of message %d got %s, which nobody has sent%s", l.m.ID, d, v.a.explain(d))
	}
	return nil
}

// losses finds messages that were not received by ranks that have finished, and those that were
// both cancelled and received, or neither.
func (v *verifier) losses() error {
	for _, l := range v.a.list {
		d, rec := v.got[l.m.ID], v.byRank[l.m.To]
		s := Req{l.m.ID, SendSide}
		switch {
		case v.cancelled[s] && d != nil:
			return mismatch("message %d was cancelled and received", l.m.ID)
		case d != nil || v.cancelled[s] || rec == nil || !rec.Ended:
			continue
		case v.decided[s]:
			return mismatch("message %d was neither cancelled nor received", l.m.ID)
		case l.cancel == never || v.a.p.Steps[l.cancel].(Cancel).Side == RecvSide || v.byRank[l.m.From] != nil:
			return mismatch("message %d is lost", l.m.ID)
		}
	}
	return nil
}

func (v *verifier) results() error {
	at := make([]map[int]uint64, len(v.byRank))
	for r, rec := range v.byRank {
		at[r] = map[int]uint64{}
		if rec == nil {
			continue
		}
		for _, result := range rec.Results {
			if _, twice := at[r][result.Step]; twice {
				return mismatch("rank %d has two results of step %d", r, result.Step+1)
			}
			at[r][result.Step] = result.Sum
		}
	}
	for i, s := range v.a.p.Steps {
		c, ok := s.(Collective)
		if !ok {
			continue
		}
		for _, r := range v.comms.byName[c.Comm].all() {
			sum, there := at[r][i]
			delete(at[r], i)
			t := c.trialIn(v.comms.byName[c.Comm], r)
			switch {
			case t.out == nil && !there, !there && (v.byRank[r] == nil || !v.byRank[r].Ended):
			case t.out == nil || !there:
				return v.a.fault(i, mismatch("rank %d: a result is missing, or there should be none", r))
			case sum != t.want.sum(t.want.size()):
				return v.a.fault(i, mismatch("rank %d has another result than the model", r))
			}
		}
	}
	for r, left := range at {
		if len(left) > 0 {
			return mismatch("rank %d has results of %d steps that are no collective operations of its", r, len(left))
		}
	}
	return nil
}

// judge compares the result of one receive with what its family may get. It does not look at other
// receives: Verify does.
func (a *lives) judge(c *comms, got *Delivery, buf vector) error {
	l := a.byID[got.Msg]
	source := func(m *Message) int { return c.byName[m.Comm].rank(m.From) }
	if !l.family.wild() {
		m := l.m
		n := min(m.Len, m.Cap)
		if err := got.against(m, source(m)); err != nil {
			return err
		}
		if d := buf.slice(0, n).unlike(m.seed()); d != "" {
			return mismatch("message %d: %s%s", m.ID, d, a.explain(got))
		}
		return nil
	}
	var last error
	for _, s := range l.family.sends {
		if source(s.m) != got.Source || s.m.Tag != got.Tag || s.m.Len != got.Count || got.Truncated {
			continue
		}
		d := buf.slice(0, got.Count).unlike(s.m.seed())
		if d == "" {
			return nil
		}
		last = mismatch("message %d, or another for it: %s%s", l.m.ID, d, a.explain(got))
	}
	if last == nil {
		last = mismatch("message %d: nobody has sent %s", l.m.ID, got)
	}
	return last
}

// against compares a status with the only message that it can belong to.
func (d *Delivery) against(m *Message, source int) error {
	want := Delivery{Msg: m.ID, Source: source, Tag: m.Tag, Count: min(m.Len, m.Cap), Truncated: m.Len > m.Cap, Sum: d.Sum}
	if *d != want {
		return mismatch("message %d: got %s, want %s", m.ID, d, &want)
	}
	return nil
}

func (d *Delivery) String() string {
	cut := ""
	if d.Truncated {
		cut = ", truncated"
	}
	return fmt.Sprintf("source %d, tag %d, %d elements%s", d.Source, d.Tag, d.Count, cut)
}

func (a *lives) explain(d *Delivery) string {
	kind := a.byID[d.Msg].m.Kind
	for _, l := range a.list {
		if l.m.Kind == kind && l.m.Len >= d.Count && l.m.ID != d.Msg && d.Count > 0 && l.m.content(d.Count).sum(d.Count) == d.Sum {
			return fmt.Sprintf("; that is message %d", l.m.ID)
		}
	}
	return ""
}

// contexts judges the communicators: rank, size and context ID must be those of the model, which
// follows IMPI's rule; and no member may have two communicators with a context ID in common.
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
