package mpi

import "github.com/openimpi/impi/core/coll"

// checking is the comparison that comes before an operation.
type checking struct {
	call   coll.Call
	sched  coll.Schedule
	memory [coll.CheckLen]byte
	bad    error // why this member cannot do its part
	then   func(verdict error)
}

// compare has the operation begin with a comparison, if the program asked for it
// and all members can take part. planned is the planner's error: it is everybody's
// then.
func (x *collective) compare(call coll.Call, planned error) error {
	cs := &x.c.colls
	if !x.c.checks() || !cs.ours {
		return planned
	}
	x.checking = &checking{call: call, bad: planned}
	x.checking.call.Bad = planned != nil
	cs.planner.Check(&x.checking.sched, &x.checking.call, x.checking.memory[:])
	x.sched = &x.checking.sched
	return nil
}

// checked ends the comparison.
func (x *collective) checked() error {
	k := x.checking
	x.checking, x.sched = nil, &x.main
	err := k.bad
	if err == nil {
		err = x.c.colls.planner.Judge(k.memory[:])
	}
	if k.then != nil {
		k.then(err)
	}
	return err
}

// announce has all members compare that they call the constructor name, if the
// program asked for it. The process is not locked.
func (c *Comm) announce(name string) error {
	if !c.checks() {
		return nil
	}
	x, err := c.begin()
	if err != nil {
		return err
	}
	c.constructors = x.ordinal()
	return x.run(x.compare(coll.Call{Name: name, Root: coll.NoRoot}, nil))
}

// ordinal is what constructors are counted on from after an announcement: as some
// members may have failed in one that others did not call, their own count is not
// the same everywhere.
func (x *collective) ordinal() uint32 { return x.number << 4 }

// announceLater is announce for a constructor that must not wait: then is told its
// number, and the verdict. The process is locked.
func (c *Comm) announceLater(name string, then func(seq uint32, verdict error)) error {
	if !c.checks() {
		then(c.ordinal(), nil)
		return nil
	}
	x, err := c.begin()
	if err != nil {
		return err
	}
	err = x.compare(coll.Call{Name: name, Root: coll.NoRoot}, nil)
	seq := x.ordinal() + 1
	x.checking.then = func(verdict error) { then(seq, verdict) }
	c.p.dispatch(x)
	return err
}

// announced are names of constructors.
var announced = map[uint32]string{doesDup: "Dup", doesCreate: "Create", doesDerive: "a topology's constructor"}

// Which constructor a member has called, as a flag of its proposal: if there are
// several, members call different ones.
const (
	doesDup uint32 = 1 << (iota + 8)
	doesIdup
	doesCreate
	doesCreateGroup
	doesDerive
	doesSplit
	doesJoin
	doesMerge
	doesMeet
	doesConnect
	doesAll = 1<<(iota+8) - doesDup
)
