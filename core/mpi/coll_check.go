package mpi

import "github.com/openimpi/impi/core/coll"

// checkVariable set to 1 in a proc's environment has the members of communicators
// compare what they have been asked to do before each collective operation. All
// procs of the job must have it.
const checkVariable = "IMPI_CHECK"

// checking is the comparison that comes before an operation.
type checking struct {
	call   coll.Call
	sched  coll.Schedule
	memory [coll.CheckLen]byte
	bad    error // why this member cannot do its part
}

// compare has the operation begin with a comparison, if the program asked for it
// and all members can take part. planned is the planner's error: it is everybody's
// then.
func (x *collective) compare(call coll.Call, planned error) error {
	cs := &x.c.colls
	if !x.c.p.check || !cs.ours {
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
	if k.bad != nil {
		return k.bad
	}
	return x.c.colls.planner.Judge(k.memory[:])
}
