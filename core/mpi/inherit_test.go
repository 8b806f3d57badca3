package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// descendants makes communicators of c by every constructor. The values tell which
// of them take along what is cached with c.
func descendants(c *Comm) (made map[string]*Comm, err error) {
	made = map[string]*Comm{}
	group, err := c.Group()
	local, err1 := c.Split(c.Rank()%2, 0)
	if err := errors.Join(err, err1); err != nil {
		return nil, err
	}
	later, q, err := c.Idup()
	if err == nil {
		_, err = q.Wait()
	}
	made["Idup"] = later
	// In one order on all ranks.
	var all []error
	add := func(name string, d *Comm, err error) { made[name], all = d, append(all, err) }
	d, e := c.Dup()
	add("Dup", d, e)
	d, e = c.DupWithInfo(nil)
	add("DupWithInfo", d, e)
	d, e = c.Create(group)
	add("Create", d, e)
	d, e = c.CreateGroup(group, 1)
	add("CreateGroup", d, e)
	d, e = c.Split(0, 0)
	add("Split", d, e)
	d, e = c.SplitType(CommTypeShared, 0, nil)
	add("SplitType", d, e)
	d, e = c.CartCreate([]int{c.Size()}, []bool{false}, false)
	add("CartCreate", d, e)
	d, e = c.GraphCreate(make([]int, c.Size()), nil, false)
	add("GraphCreate", d, e)
	d, e = c.DistGraphCreate(nil, nil, nil, nil, nil, false)
	add("DistGraphCreate", d, e)
	d, e = c.DistGraphCreateAdjacent(nil, nil, nil, nil, nil, false)
	add("DistGraphCreateAdjacent", d, e)
	inter, e := local.IntercommCreate(0, c, 1-c.Rank()%2, 3)
	add("IntercommCreate", inter, e)
	d, e = inter.Merge(c.Rank()%2 == 0)
	add("Merge", d, e)
	return made, errors.Join(append(all, err)...)
}

// Every constructor gives the new communicator its parent's error handler, which
// that keeps when the parent gets another.
func TestEveryConstructorInheritsTheHandler(t *testing.T) {
	layout{procs: 4, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		l := newListener(t).on(t, c)
		made, err := descendants(c)
		if err := errors.Join(err, c.SetErrhandler(ErrorsReturn)); err != nil {
			return err
		}
		for name, d := range made {
			l.errs = nil
			if err := Send(d, []byte{1}, 99, 0); len(l.errs) != 1 || l.errs[0] != err || l.c != d {
				return fmt.Errorf("%s: the handler has heard %v of %p, want %v of %p", name, l.errs, l.c, err, d)
			}
		}
		return nil
	})
}

// Attributes go with duplicates, of intercommunicators too, and with nothing else.
// The predefined ones are there on every communicator.
func TestOnlyDuplicatesInheritAttributes(t *testing.T) {
	key := keyOf(t, DupCopy, nil, nil)
	layout{procs: 4, tagUB: 40_000, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		if err := c.SetAttr(key, 5); err != nil {
			return err
		}
		made, err := descendants(c)
		if err != nil {
			return err
		}
		copies := map[string]any{"Dup": 5, "DupWithInfo": 5, "Idup": 5}
		for name, d := range made {
			if err := first(has(d, key, copies[name]), has(d, TagUB, 40_000), has(d, UniverseSize, 4)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		inter := made["IntercommCreate"]
		if err := inter.SetAttr(key, 6); err != nil {
			return err
		}
		d, err := inter.Dup()
		if err != nil {
			return err
		}
		merged, err := d.Merge(c.Rank()%2 == 0)
		return first(err, has(d, key, 6), has(merged, key, nil), has(c, key, 5))
	})
}

// Receives of anything that are pending on the parent get none of what its
// constructors say to each other, and what is sent meanwhile arrives there.
func TestConstructorsBesidePendingReceives(t *testing.T) {
	everywhere(t, 4, func(t *testing.T, c *Comm) error {
		got := make([]byte, 3)
		var open []Request
		for i := range got {
			q, err := Irecv(c, got[i:i+1], AnySource, AnyTag)
			if err != nil {
				return err
			}
			open = append(open, q)
		}
		d, err1 := c.Dup()
		s, err2 := c.Split(c.Rank()%2, 0)
		group, err3 := c.Group()
		m, err4 := c.Create(group)
		if err := errors.Join(err1, err2, err3, err4, talks(c, m, 0, 1, 2, 3), Barrier(s), d.Free()); err != nil {
			return err
		}
		for i := range got {
			if err := Send(c, []byte{byte(i + 7)}, (c.Rank()+1)%4, i); err != nil {
				return err
			}
		}
		return errors.Join(Waitall(open, nil), expect("received", string(got), "\x07\x08\x09"))
	})
}

// What is wrong with an Idup is told by its request, to all members.
func TestIdupWithFreedInfo(t *testing.T) {
	layout{procs: 2, client: func(r int) int { return r }}.run(t, func(t *testing.T, c *Comm) error {
		info := NewInfo()
		if c.Rank() == 1 {
			if err := info.Free(); err != nil {
				return err
			}
		}
		d, q, err := c.IdupWithInfo(info)
		if err != nil {
			return err
		}
		_, err = q.Wait()
		want := mpierr.Info
		if c.Rank() == 0 {
			want = ErrorClass(ErrElsewhere)
		}
		return errors.Join(classed("the request", err, want), classed("what came of it", d.Check(), mpierr.Comm), talks(c, c, 0, 1))
	})
}

// One member's bad colour harms nobody where the others run another MPI, which
// cannot be told of it: they get their communicators.
func TestForeignSplitWithABadColour(t *testing.T) {
	foreignLayout(4).run(t, func(t *testing.T, c *Comm) error {
		color := 0
		if c.Rank() == 2 {
			color = -7
		}
		d, err := c.Split(color, 0)
		if c.Rank() == 2 {
			err = classed("colour -7", err, mpierr.Arg)
		} else {
			err = errors.Join(err, talks(c, d, 0, 1, 3))
		}
		e, err2 := c.Dup()
		return errors.Join(err, err2, talks(c, e, 0, 1, 2, 3))
	})
}

// An intercommunicator is no local communicator of another, and its members cannot
// be split by machine.
func TestConstructorsForOneGroup(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		_, inter, err := halves(c, 1)
		if err != nil {
			return err
		}
		group, err := c.Group()
		return errors.Join(err, classed("IntercommCreate", second(inter.IntercommCreate(0, c, 0, 0)), mpierr.Comm),
			classed("SplitType", second(inter.SplitType(CommTypeShared, 0, nil)), mpierr.Comm),
			classed("CreateGroup", second(inter.CreateGroup(group, 0)), mpierr.Comm),
			classed("Scan", Scan(inter, []int{1}, []int{0}, Sum), mpierr.Comm), classed("Exscan", Exscan(inter, []int{1}, []int{0}, Sum), mpierr.Comm))
	})
}
