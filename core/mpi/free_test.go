package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// A communicator is freed once, through whatever copy of its handle, and what is
// under way on it takes place.
func TestFree(t *testing.T) {
	everywhere(t, 2, func(t *testing.T, c *Comm) error {
		d, err := c.Dup()
		if err != nil {
			return err
		}
		other, got := 1-c.Rank(), []byte{0}
		r, err1 := Irecv(d, got, other, 3)
		s, err2 := Isend(d, []byte{byte(c.Rank() + 5)}, other, 3)
		again := d
		if err := errors.Join(err1, err2, d.Free(), classed("free of a copy", again.Free(), mpierr.Comm)); err != nil {
			return err
		}
		return errors.Join(Waitall([]Request{r, s}, nil), expect("message on it", int(got[0]), other+5),
			classed("message after it", Send(d, got, other, 3), mpierr.Comm))
	})
}

// A delete callback that fails keeps the communicator.
func TestFreeThatFails(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		stay := true
		key, err := CreateKeyval(nil, func(*Comm, Keyval, any, any) error {
			if stay {
				return errors.New("not yet")
			}
			return nil
		}, nil)
		d, err2 := c.Dup()
		if err := errors.Join(err, err2, d.SetAttr(key, 1)); err != nil {
			return err
		}
		if d.Free() == nil || d.Disconnect() == nil {
			return errors.New("freed although an attribute stays")
		}
		if err := talks(c, d, 0, 1); err != nil {
			return err
		}
		stay = false
		return errors.Join(d.Free(), classed("again", d.Free(), mpierr.Comm))
	})
}

// Disconnect waits for what is under way, on all members.
func TestDisconnect(t *testing.T) {
	layout{procs: 3, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		local, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		d, err := c.Dup()
		if err != nil {
			return err
		}
		got := make([]byte, 200_000)
		next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
		r, err1 := Irecv(d, got, before, 0)
		s, err2 := Isend(d, pattern(len(got), c.Rank()), next, 0)
		if err := errors.Join(err1, err2, d.Disconnect()); err != nil {
			return err
		}
		for _, q := range []*Request{&r, &s} {
			if done, _, err := q.Test(); !done || err != nil {
				return fmt.Errorf("under way after Disconnect: %v, %v", done, err)
			}
		}
		return errors.Join(expect("data", string(got), string(pattern(len(got), before))),
			classed("again", d.Disconnect(), mpierr.Comm), inter.Disconnect(), local.Disconnect())
	})
}

func TestNames(t *testing.T) {
	layout{}.run(t, func(t *testing.T, c *Comm) error {
		long := strings.Repeat("x", MaxObjectName+20)
		d, err := c.Dup()
		if err != nil {
			return err
		}
		all := []error{expect("world", c.Name(), "MPI_COMM_WORLD"), expect("self", (*Comm)(c.in().Process().Comms.Self).Name(), "MPI_COMM_SELF"),
			expect("new", d.Name(), ""), d.SetName("mine"), expect("set", d.Name(), "mine"), d.SetName(long),
			expect("long", d.Name(), long[:MaxObjectName]), d.SetName(""), expect("empty", d.Name(), ""), c.SetName("other"), expect("world", c.Name(), "other")}
		return errors.Join(append(all, d.SetName("before"), d.Free(), expect("freed", d.Name(), "before"))...)
	})
}

// Hints are copied when they are set and when they are got; Dup does not inherit
// them, DupWithInfo has its own.
func TestHints(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		info, more := NewInfo(), NewInfo()
		if err := errors.Join(info.Set("key", "zero"), c.SetInfo(info), more.Set("other", "stays"), c.SetInfo(more),
			info.Set("key", "one"), c.SetInfo(info), info.Set("key", "two")); err != nil {
			return err
		}
		both, err := c.GetInfo()
		other, _, err1 := both.Get("other")
		n, err2 := both.Len()
		if err := errors.Join(err, err1, err2, expect("the other", other, "stays"), expect("hints", n, 2)); err != nil {
			return err
		}
		plain, err1 := c.Dup()
		with, err2 := c.DupWithInfo(info)
		later, q, err3 := c.IdupWithInfo(info)
		if err := errors.Join(err1, err2, err3, info.Free()); err != nil {
			return err
		}
		_, err = q.Wait()
		all := []error{err}
		for d, want := range map[*Comm]string{c: "one", plain: "", with: "two", later: "two"} {
			got, err := d.GetInfo()
			value, _, err2 := got.Get("key")
			all = append(all, err, err2, expect("hint", value, want), got.Free())
		}
		_, _, idup := c.IdupWithInfo(info)
		return errors.Join(append(all, classed("no info", c.SetInfo(nil), mpierr.Info), classed("freed info", c.SetInfo(info), mpierr.Info),
			classed("dup with it", second(c.DupWithInfo(info)), mpierr.Info), idupFailed(idup))...)
	})
}

// idupFailed: what is wrong with an Idup shows in its request, so that all members
// hear of it.
func idupFailed(err error) error { return classed("idup with a freed info", err, mpierr.Success) }
