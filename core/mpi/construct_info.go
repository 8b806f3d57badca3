package mpi

import "slices"

// SetInfo adds hints to those of c, or replaces them by key (MPI_Comm_set_info). No hint changes
// what a communicator does so far.
func (c *Comm) SetInfo(info *Info) error {
	err := c.check()
	if err == nil {
		err = info.locked(func() error { return nil })
	}
	if err != nil {
		return c.failed("SetInfo", err)
	}
	given, err := snapshot(info)
	c.p.lock()
	c.hints = c.hints.with(given)
	c.p.unlock()
	return c.failed("SetInfo", err)
}

// with is a copy of i with the pairs of another one, which count. Either may be nil. Both
// are nobody else's.
func (i *Info) with(other *Info) *Info {
	all := &Info{}
	if i != nil {
		all.pairs = slices.Clone(i.pairs)
	}
	if other == nil {
		return all
	}
	for _, x := range other.pairs {
		if n := slices.IndexFunc(all.pairs, func(y infoPair) bool { return y.key == x.key }); n >= 0 {
			all.pairs[n] = x
		} else {
			all.pairs = append(all.pairs, x)
		}
	}
	return all
}

// GetInfo gives a copy of the hints of c, which the caller has to Free.
func (c *Comm) GetInfo() (*Info, error) {
	if err := c.check(); err != nil {
		return nil, c.failed("GetInfo", err)
	}
	c.p.lock()
	hints := c.hints
	c.p.unlock()
	if hints == nil {
		return NewInfo(), nil
	}
	return hints.copied()
}

// snapshot is a copy of what info says now; nil of nil, which says nothing.
func snapshot(info *Info) (*Info, error) {
	if info == nil {
		return nil, nil
	}
	return info.copied()
}

// copied is Dup without the handler.
func (i *Info) copied() (d *Info, err error) {
	err = i.locked(func() error {
		d = &Info{pairs: append([]infoPair(nil), i.pairs...)}
		return nil
	})
	return d, err
}
