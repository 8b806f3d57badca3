package collective

import (
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/internal/engine/proc"
)

type checking struct {
	call   coll.Call
	sched  coll.Schedule
	memory [coll.CheckLen]byte
	bad    error // why this member cannot take part; the others get only a flag
	then   func(verdict error)
}

// compare plans a comparison of the members' calls, which must be the same and in the same order
// (MPI-4.1, 6.14), before the operation, if CheckVariable is set and all members run this library.
// planned is the planner's error at this member: with a comparison all members get an error then.
func (x *collective) compare(call coll.Call, planned error) error {
	cs := &x.c.State().Colls
	if !x.c.Checks() || !cs.AllImpi {
		return planned
	}
	x.checking = &checking{call: call, bad: planned}
	x.checking.call.Bad = planned != nil
	cs.Planner.Check(&x.checking.sched, &x.checking.call, x.checking.memory[:])
	x.sched = &x.checking.sched
	return nil
}

// checked ends the comparison: it returns the error if the calls differ, and goes on with the
// operation otherwise.
func (x *collective) checked() error {
	k := x.checking
	x.checking, x.sched = nil, &x.main
	err := k.bad
	if err == nil {
		err = x.c.State().Colls.Planner.CompareCalls(k.memory[:])
	}
	if k.then != nil {
		k.then(err)
	}
	return err
}

// CheckConstructor checks that all members call the constructor name, if CheckVariable is set. The
// process is not locked.
func CheckConstructor(c *proc.Comm, name string) error {
	if !c.Checks() {
		return nil
	}
	x, err := Begin(c)
	if err != nil {
		return err
	}
	c.State().Constructors = x.ordinal()
	return x.run(x.compare(coll.Call{Name: name, Root: coll.NoRoot}, nil))
}

// ordinal returns the number from which constructors are counted after an announcement. It derives
// from the number of the operation, which is the same at all members; their own counts may differ,
// as some may have failed in a constructor that others did not call.
func (x *collective) ordinal() uint32 { return x.number << 4 }

// CheckConstructorLater is CheckConstructor for a constructor that must not wait: it later calls
// then with the constructor's number and the result of the comparison. The process is locked.
func CheckConstructorLater(c *proc.Comm, name string, then func(seq uint32, verdict error)) error {
	if !c.Checks() {
		then(c.Ordinal(), nil)
		return nil
	}
	x, err := Begin(c)
	if err != nil {
		return err
	}
	err = x.compare(coll.Call{Name: name, Root: coll.NoRoot}, nil)
	seq := x.ordinal() + 1
	x.checking.then = func(verdict error) { then(seq, verdict) }
	c.Process().Background.Dispatch(x)
	return err
}

// The constructors, as flags of a member's proposal: if the sum has several, members call
// different ones.
const (
	ConstructorDup uint32 = 1 << (iota + 8)
	ConstructorIdup
	ConstructorCreate
	ConstructorCreateGroup
	ConstructorDerive
	ConstructorSplit
	ConstructorJoin
	ConstructorMerge
	ConstructorMeet
	ConstructorConnect
	ConstructorMask = 1<<(iota+8) - ConstructorDup
)
