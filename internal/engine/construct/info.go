package construct

import "github.com/openimpi/impi/internal/engine/proc"

// SetInfo sets hints; hints that info does not have stay as they are (MPI-4.1, 7.4.4).
func SetInfo(c *proc.Comm, info *proc.Info) error {
	err := c.Usable()
	if err == nil {
		err = info.Locked(func() error { return nil })
	}
	if err != nil {
		return err
	}
	given, err := Snapshot(info)
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	c.State().Hints = c.State().Hints.With(given)
	if r, ok := recoveryOf(p); ok {
		r.scope(c, len(p.Survival.Lost()))
	}
	return err
}

// GetInfo returns a new Info with the hints of c (MPI-4.1, 7.4.4).
func GetInfo(c *proc.Comm) (*proc.Info, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	c.Process().Lock()
	hints := c.State().Hints
	c.Process().Unlock()
	if hints == nil {
		return proc.NewInfo(), nil
	}
	return hints.Dup()
}

// Snapshot returns a copy of info as it is now, nil for nil.
func Snapshot(info *proc.Info) (*proc.Info, error) {
	if info == nil {
		return nil, nil
	}
	return info.Dup()
}
