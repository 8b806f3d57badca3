package collective

import (
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/internal/engine/proc"
)

// checking is the comparison that comes before an operation.
type checking struct {
	call   coll.Call
	sched  coll.Schedule
	memory [coll.CheckLen]byte
	bad    error // why this member cannot do its part
	then   func(verdict error)
}

// compare makes the operation begin with a comparison, if the program asked for it and all members
// can take part. planned is the planner's error, which all members get then.
func (x *collective) compare(call coll.Call, planned error) error {
	cs := &x.c.State().Colls
	if !x.c.Checks() || !cs.Ours {
		return planned
	}
	x.checking = &checking{call: call, bad: planned}
	x.checking.call.Bad = planned != nil
	cs.Planner.Check(&x.checking.sched, &x.checking.call, x.checking.memory[:])
	x.sched = &x.checking.sched
	return nil
}

// checked ends the comparison.
func (x *collective) checked() error {
	k := x.checking
	x.checking, x.sched = nil, &x.main
	err := k.bad
	if err == nil {
		err = x.c.State().Colls.Planner.Judge(k.memory[:])
	}
	if k.then != nil {
		k.then(err)
	}
	return err
}

// Announce compares that all members call the constructor name, if the program asked for it. The
// process is not locked.
func Announce(c *proc.Comm, name string) error {
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

// ordinal is the number from which constructors are counted after an announcement. The members'
// own counts may differ, as some may have failed in a constructor that others did not call.
func (x *collective) ordinal() uint32 { return x.number << 4 }

// AnnounceLater is Announce for a constructor that must not wait: it calls then with the
// constructor's number and the verdict. The process is locked.
func AnnounceLater(c *proc.Comm, name string, then func(seq uint32, verdict error)) error {
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

// Announced are names of constructors.
var Announced = map[uint32]string{DoesDup: "Dup", DoesCreate: "Create", DoesDerive: "a topology's constructor"}

// The constructors, as flags of a member's proposal: if the sum has several, members call
// different ones.
const (
	DoesDup uint32 = 1 << (iota + 8)
	DoesIdup
	DoesCreate
	DoesCreateGroup
	DoesDerive
	DoesSplit
	DoesJoin
	DoesMerge
	DoesMeet
	DoesConnect
	DoesAll = 1<<(iota+8) - DoesDup
)
