package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/life"
)

// keyOf makes a key of communicators, freed at the end of the test.
func keyOf(t *testing.T, cp CopyFunc[*Comm], del DeleteFunc[*Comm], extra any) Keyval {
	t.Helper()
	key, err := CreateKeyval(cp, del, extra)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		again := key // the test may have freed it
		_ = FreeKeyval(&again)
	})
	return key
}

// has checks the attribute of c; nil: none.
func has(c *Comm, key Keyval, want any) error {
	value, ok, err := c.Attr(key)
	if err == nil && (ok != (want != nil) || value != want) {
		err = fmt.Errorf("attribute %d is %v, %v; want %v", key, value, ok, want)
	}
	return err
}

func TestAttributesOfCommunicators(t *testing.T) {
	key := keyOf(t, nil, nil, nil)
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		for _, c := range []*Comm{c, (*Comm)(c.in().Process().Comms.Self)} {
			if err := first(has(c, key, nil), c.SetAttr(key, "a"), has(c, key, "a"), c.SetAttr(key, c), has(c, key, c),
				c.DeleteAttr(key), has(c, key, nil), c.DeleteAttr(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestPredefinedCopyFunctions(t *testing.T) {
	null, dup, none := keyOf(t, NullCopy, NullDelete, nil), keyOf(t, DupCopy, NullDelete, nil), keyOf(t, nil, nil, nil)
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		for _, key := range []Keyval{null, dup, none} {
			if err := c.SetAttr(key, 5); err != nil {
				return err
			}
		}
		d, err := c.Dup()
		if err != nil {
			return err
		}
		s, err := c.Split(0, 0)
		if err != nil {
			return err
		}
		return first(has(d, null, nil), has(d, dup, 5), has(d, none, nil), // Dup alone takes attributes along
			has(s, null, nil), has(s, dup, nil), has(s, none, nil),
			d.SetAttr(dup, 6), has(c, dup, 5), has(d, dup, 6))
	})
}

func TestCopyFuncGetsTheCommunicator(t *testing.T) {
	extra := new(int)
	var of *Comm
	key := keyOf(t, func(old *Comm, key Keyval, e, value any) (any, bool, error) {
		if of = old; e != any(extra) || has(old, key, value) != nil {
			return nil, false, errors.New("it gets something else")
		}
		return value.(int) + 1, true, nil
	}, func(c *Comm, key Keyval, value, e any) error {
		if e != any(extra) || has(c, key, value) != nil { // it is there meanwhile
			return errors.New("it gets something else")
		}
		of = c
		return nil
	}, extra)
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	if err := c.SetAttr(key, 1); err != nil {
		t.Fatal(err)
	}
	d, err := c.Dup()
	if err != nil || of != c {
		t.Fatalf("copied of %p: %v", of, err)
	}
	if err := first(has(d, key, 2), d.DeleteAttr(key)); err != nil || of != d {
		t.Errorf("deleted of %p: %v", of, err)
	}
}

// A member whose copying fails makes Dup fail on all, with its own error there;
// what was copied is deleted, and all goes on.
func TestDupFailsEverywhere(t *testing.T) {
	refused := NewError(mpierr.NoMem)
	for _, clients := range []int{1, 2} {
		deleted := make([]int, 4)
		good := keyOf(t, DupCopy, func(c *Comm, _ Keyval, _, _ any) error {
			deleted[c.Rank()]++
			return nil
		}, nil)
		bad := keyOf(t, func(c *Comm, _ Keyval, _, _ any) (any, bool, error) {
			if c.Rank() == 1 {
				return nil, false, refused
			}
			return nil, false, nil
		}, nil, nil)
		layout{procs: 4, client: func(rank int) int { return rank % clients }, data: sameOrder}.run(t, func(t *testing.T, c *Comm) error {
			if err := first(c.SetAttr(good, 1), c.SetAttr(bad, 2)); err != nil {
				return err
			}
			before := c.in().Process().Comms.Contexts.Max()
			d, err := c.Dup()
			want := ErrElsewhere
			if c.Rank() == 1 {
				want = refused
			}
			if d != nil || !errors.Is(err, want) || c.in().Process().Comms.Contexts.Max() != before {
				return fmt.Errorf("got %v, %w; contexts up to %d, before %d", d, err, c.in().Process().Comms.Contexts.Max(), before)
			}
			if err := first(expect("deletions", deleted[c.Rank()], 1), has(c, good, 1), has(c, bad, 2), c.DeleteAttr(bad)); err != nil {
				return err
			}
			if d, err = c.Dup(); err != nil {
				return err
			}
			return first(has(d, good, 1), Barrier(d), expect("class", ErrorClass(refused), mpierr.NoMem))
		})
	}
}

// sameOrder says that all sites are ours.
func sameOrder(int, int) string { return datatype.HostOrder().String() }

func TestDeleteFuncThatFails(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	l := newListener(t).on(t, c)
	allow := false
	key := keyOf(t, nil, func(*Comm, Keyval, any, any) error {
		if !allow {
			return NewError(mpierr.Spawn)
		}
		return nil
	}, nil)
	if err := c.SetAttr(key, 1); err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func() error{
		"delete": func() error { return c.DeleteAttr(key) }, "set": func() error { return c.SetAttr(key, 2) },
	} {
		err := call()
		l.heard(t, c, err)
		if ErrorClass(err) != mpierr.Spawn || has(c, key, 1) != nil {
			t.Errorf("%s: %v, then %v", what, err, has(c, key, 1))
		}
	}
	if allow = true; c.DeleteAttr(key) != nil || has(c, key, nil) != nil {
		t.Error("it does not go in the end")
	}
}

// A program frees keys as soon as it has attached values, and calls MPI in callbacks.
func TestKeyFreedAtOnce(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	calls := 0
	var saved Keyval
	key, err := CreateKeyval(DupCopy, func(c *Comm, key Keyval, _, _ any) error {
		calls++
		again := saved
		return first(FreeKeyval(&again), c.DeleteAttr(saved), Barrier(c))
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	saved = key
	if err := first(c.SetAttr(key, 1), FreeKeyval(&key)); err != nil || key != KeyvalInvalid {
		t.Fatalf("%v, %d", err, key)
	}
	d, err := c.Dup()
	if err != nil {
		t.Fatal(err)
	}
	if err := first(has(d, saved, 1), c.DeleteAttr(saved), has(c, saved, nil), c.SetAttr(saved, 3), c.DeleteAttr(saved), d.DeleteAttr(saved)); err != nil || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if _, _, err := c.Attr(saved); ErrorClass(err) != mpierr.Keyval {
		t.Errorf("a key that is dead: %v", err)
	}
}

func TestKeysThatAreWrong(t *testing.T) {
	p := layout{}.start(t)[0]
	program(t, p)
	c := (*Comm)(p.Comms.World)
	l := newListener(t).on(t, c)
	typ, err := CreateTypeKeyval(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ofComm, tagUB, invalid, saved := keyOf(t, nil, nil, nil), TagUB, KeyvalInvalid, typ
	b := datatype.Basic(datatype.Byte)
	for what, call := range map[string]func() error{
		"set of a type's": func() error { return c.SetAttr(typ, 1) }, "get of a type's": func() error { return third(c.Attr(typ)) },
		"delete of a type's": func() error { return c.DeleteAttr(typ) }, "free of a type's": func() error { return FreeKeyval(&saved) },
		"type's set of a communicator's": func() error { return TypeSetAttr(b, ofComm, 1) }, "type's get of a communicator's": func() error { return third(TypeAttr(b, ofComm)) },
		"type's delete of a communicator's": func() error { return TypeDeleteAttr(b, ofComm) }, "type's free of a communicator's": func() error { return FreeTypeKeyval(&ofComm) },
		"type's get of TAG_UB": func() error { return third(TypeAttr(b, TagUB)) },
		"set of TAG_UB":        func() error { return c.SetAttr(TagUB, 1) }, "delete of TAG_UB": func() error { return c.DeleteAttr(TagUB) }, "free of TAG_UB": func() error { return FreeKeyval(&tagUB) },
		"set of none": func() error { return c.SetAttr(invalid, 1) }, "get of none": func() error { return third(c.Attr(invalid)) },
		"delete of none": func() error { return c.DeleteAttr(invalid) }, "free of none": func() error { return FreeKeyval(&invalid) },
		"get of WIN_BASE": func() error { return third(c.Attr(WinBase)) },
	} {
		err := call()
		l.heard(t, c, err)
		if ErrorClass(err) != mpierr.Keyval {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := FreeKeyval(nil); ErrorClass(err) != mpierr.Arg {
		t.Errorf("no variable: %v", err)
	}
	if err := FreeTypeKeyval(&typ); err != nil || saved == KeyvalInvalid {
		t.Errorf("%v; a variable whose key was not freed is %d", err, saved)
	}
}

func TestPredefinedAttributes(t *testing.T) {
	layout{procs: 2, tagUB: 40_000}.run(t, func(t *testing.T, c *Comm) error {
		c.in().Process().Job.AppNum = 3
		d, err := c.Dup()
		if err != nil {
			return err
		}
		for _, c := range []*Comm{c, d, (*Comm)(c.in().Process().Comms.Self)} {
			if err := first(has(c, TagUB, 40_000), has(c, IO, AnySource), has(c, Host, ProcNull), has(c, WtimeIsGlobal, 0),
				has(c, AppNum, 3), has(c, UniverseSize, 2)); err != nil {
				return err
			}
		}
		return nil
	})
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	class, err := AddErrorClass()
	if err != nil {
		t.Fatal(err)
	}
	if err := has(c, LastUsedCode, int(class)); err != nil {
		t.Error(err)
	}
	if err := has(c, TagUB, 1<<31-1); err != nil {
		t.Error(err)
	}
}

// Attributes of SELF are the hooks of a program's end: the last one first, while
// MPI can still be used.
func TestFinalizeDeletesAttributesOfSelf(t *testing.T) {
	procs := layout{procs: 2}.start(t)
	program(t, procs[0])
	var order []any
	del := func(c *Comm, _ Keyval, value, _ any) error {
		order = append(order, value)
		if Finalized() || !Initialized() {
			t.Error("it is finalized already")
		}
		return toSelf(c)
	}
	for i := range 3 {
		if err := (*Comm)(procs[0].Comms.Self).SetAttr(keyOf(t, nil, del, nil), i); err != nil {
			t.Fatal(err)
		}
	}
	fails := true
	last := keyOf(t, nil, func(*Comm, Keyval, any, any) error {
		if fails {
			return errCallback
		}
		return nil
	}, nil)
	if err := (*Comm)(procs[0].Comms.Self).SetAttr(last, 9); err != nil {
		t.Fatal(err)
	}
	if err := Finalize(); !errors.Is(err, errCallback) || Finalized() || has((*Comm)(procs[0].Comms.Self), last, 9) != nil {
		t.Errorf("a callback that fails: %v", err)
	}
	fails = false
	other := make(chan error)
	go func() { other <- life.FinalizeProc(procs[1]) }()
	if err := errors.Join(Finalize(), <-other); err != nil || !Finalized() {
		t.Errorf("finalized %v, %v", Finalized(), err)
	}
	if !slices.Equal(order, []any{2, 1, 0}) {
		t.Errorf("deleted in the order %v", order)
	}
}

var errCallback = errors.New("the callback says no")

// toSelf sends a byte to oneself.
func toSelf(c *Comm) error {
	_, err := Sendrecv(c, []byte{1}, 0, 0, make([]byte, 1), 0, 0)
	return err
}

func TestAttributesOfNoCommunicator(t *testing.T) {
	program(t, layout{}.start(t)[0])
	var none *Comm
	for what, err := range map[string]error{"set": none.SetAttr(TagUB, 1), "get": third(none.Attr(TagUB)), "delete": none.DeleteAttr(TagUB)} {
		if ErrorClass(err) != mpierr.Comm {
			t.Errorf("%s: %v", what, err)
		}
	}
}
