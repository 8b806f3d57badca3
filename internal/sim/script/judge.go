package script

import "fmt"

// judge compares what one receive got with what its family may get. It does not
// look at other receives: Verify does.
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

// against compares a status with the one message that it can be of.
func (d *Delivery) against(m *Message, source int) error {
	want := Delivery{Msg: m.ID, Source: source, Tag: m.Tag, Count: min(m.Len, m.Cap), Truncated: m.Len > m.Cap, Sum: d.Sum}
	if *d != want {
		return mismatch("message %d: got %s, want %s", m.ID, d, &want)
	}
	return nil
}

// String is the delivery's status.
func (d *Delivery) String() string {
	cut := ""
	if d.Truncated {
		cut = ", truncated"
	}
	return fmt.Sprintf("source %d, tag %d, %d elements%s", d.Source, d.Tag, d.Count, cut)
}

// explain tells which message the contents of a delivery are of, if it is another
// one.
func (a *lives) explain(d *Delivery) string {
	kind := a.byID[d.Msg].m.Kind
	for _, l := range a.list {
		if l.m.Kind == kind && l.m.Len >= d.Count && l.m.ID != d.Msg && d.Count > 0 && l.m.content(d.Count).sum(d.Count) == d.Sum {
			return fmt.Sprintf("; that is message %d", l.m.ID)
		}
	}
	return ""
}
