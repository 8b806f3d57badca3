package mpi

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// bad is a call with an argument that MPI calls an error, and the error's class.
// Both ranks of a job make it.
type bad struct {
	what string
	want Class
	call func(x *badThings) error
}

// badThings are what bad calls are made on.
type badThings struct {
	c              *Comm
	right          int // the other rank
	freed          *Comm
	b              []byte
	uncommitted    *Datatype
	inactive, done Request // done was completed through a copy of it
	active         Request // persistent, and started
	key            Keyval  // of datatypes

	// What loose makes.
	group, gone   *Group // gone is freed
	info, nothing *Info  // nothing is freed
	taken         *Message
	handler       *Errhandler // freed
	dead          *Datatype   // freed
	ofComms       Keyval
	null          Request
	st            Status
	buffer        *SendBuffer
}

// badCalls are all of them, by what they are about. Whoever adds a function adds
// its rows here.
var badCalls = map[string][]bad{
	"point-to-point": badMessages, "requests": badRequests, "buffers": badBuffers, "collectives": badCollectives,
	"communicators": badComms, "attributes": badAttrs, "topologies": badTopologies, "shorthands": badShorthands,
}

var badMessages = []bad{
	{"Send to a rank that is none", mpierr.Rank, func(x *badThings) error { return Send(x.c, x.b, 2, 0) }},
	{"Send to any rank", mpierr.Rank, func(x *badThings) error { return Send(x.c, x.b, AnySource, 0) }},
	{"Ssend to ROOT", mpierr.Rank, func(x *badThings) error { return Ssend(x.c, x.b, -4, 0) }},
	{"Isend to rank -9", mpierr.Rank, func(x *badThings) error { return second(Isend(x.c, x.b, -9, 0)) }},
	{"Recv from rank 2", mpierr.Rank, func(x *badThings) error { return second(Recv(x.c, x.b, 2, 0)) }},
	{"Irecv from rank 2", mpierr.Rank, func(x *badThings) error { return second(Irecv(x.c, x.b, 2, 0)) }},
	{"Probe of rank 2", mpierr.Rank, func(x *badThings) error { return second(Probe(x.c, 2, 0)) }},
	{"Iprobe of rank 2", mpierr.Rank, func(x *badThings) error { return third(Iprobe(x.c, 2, 0)) }},
	{"Mprobe of rank 2", mpierr.Rank, func(x *badThings) error { return third(Mprobe(x.c, 2, 0)) }},
	{"Improbe of rank 2", mpierr.Rank, func(x *badThings) error { return third(Improbe(x.c, 2, 0)) }},
	{"SendInit to rank 2", mpierr.Rank, func(x *badThings) error { return second(SendInit(x.c, x.b, 2, 0)) }},
	{"RecvInit from rank 2", mpierr.Rank, func(x *badThings) error { return second(RecvInit(x.c, x.b, 2, 0)) }},
	{"Sendrecv with rank 2", mpierr.Rank, func(x *badThings) error { return second(Sendrecv(x.c, x.b, 2, 0, x.b, x.right, 0)) }},
	{"Sendrecv from rank 2", mpierr.Rank, func(x *badThings) error { return second(Sendrecv(x.c, x.b, x.right, 0, x.b, 2, 0)) }},
	{"SendrecvReplace with rank 2", mpierr.Rank, func(x *badThings) error { return second(SendrecvReplace(x.c, x.b, 2, 0, x.right, 0)) }},
	{"Rsend with a tag above TAG_UB", mpierr.Tag, func(x *badThings) error { return Rsend(x.c, x.b, x.right, 40_001) }},
	{"Bsend with any tag", mpierr.Tag, func(x *badThings) error { return Bsend(x.c, x.b, x.right, AnyTag) }},
	{"Recv with tag -5", mpierr.Tag, func(x *badThings) error { return second(Recv(x.c, x.b, x.right, -5)) }},
	{"Probe with tag 40001", mpierr.Tag, func(x *badThings) error { return second(Probe(x.c, AnySource, 40_001)) }},
	{"SsendInit with tag -5", mpierr.Tag, func(x *badThings) error { return second(SsendInit(x.c, x.b, x.right, -5)) }},
	{"Bsend without a buffer", mpierr.Buffer, func(x *badThings) error { return Bsend(x.c, x.b, x.right, 0) }},
}

var badRequests = []bad{
	{"Wait for what a copy completed", mpierr.Request, func(x *badThings) error { return waitFor(x.done) }},
	{"Test of it", mpierr.Request, func(x *badThings) error { q := x.done; return third(q.Test()) }},
	{"Waitall of it", mpierr.InStatus, func(x *badThings) error { return Waitall([]Request{x.done}, nil) }},
	{"Waitany of it", mpierr.Request, func(x *badThings) error { return third(Waitany([]Request{x.done})) }},
	{"Waitsome of it", mpierr.InStatus, func(x *badThings) error { return second(Waitsome([]Request{x.done}, nil)) }},
	{"Testall of it", mpierr.Request, func(x *badThings) error { return second(Testall([]Request{x.done}, nil)) }},
	{"Cancel of it", mpierr.Request, func(x *badThings) error { q := x.done; return q.Cancel() }},
	{"Free of it", mpierr.Request, func(x *badThings) error { q := x.done; return q.Free() }},
	{"Cancel of an inactive one", mpierr.Request, func(x *badThings) error { return x.inactive.Cancel() }},
	{"Start of an active one", mpierr.Request, func(x *badThings) error { return x.active.Start() }},
	{"Startall of an active one", mpierr.Request, func(x *badThings) error { return Startall([]Request{x.active}) }},
	{"Pready of a message", mpierr.Request, func(x *badThings) error { return x.active.Pready(0) }},
	{"PreadyRange of a message", mpierr.Request, func(x *badThings) error { return x.active.PreadyRange(0, 0) }},
	{"PreadyList of a message", mpierr.Request, func(x *badThings) error { return x.active.PreadyList([]int{0}) }},
	{"Parrived of a message", mpierr.Request, func(x *badThings) error { return second(x.active.Parrived(0)) }},
	{"Start of one that is not persistent", mpierr.Request, func(x *badThings) error { return x.done.Start() }},
}

func waitFor(q Request) error { return second(q.Wait()) }

var badBuffers = []bad{
	{"negative count", mpierr.Count, func(x *badThings) error { return x.c.Send(Typed(x.b, -1, datatype.Basic(datatype.Byte)), x.right, 0) }},
	{"no datatype", mpierr.Type, func(x *badThings) error { return second(x.c.Recv(Typed(x.b, 1, nil), x.right, 0)) }},
	{"uncommitted datatype", mpierr.Type, func(x *badThings) error { return second(x.c.Isend(Typed(x.b, 1, x.uncommitted), x.right, 0)) }},
	{"nil memory", mpierr.Buffer, func(x *badThings) error { return x.c.Ssend(At(nil, 4, datatype.Basic(datatype.Byte)), x.right, 0) }},
	{"too little memory", mpierr.Buffer, func(x *badThings) error {
		return second(x.c.Irecv(Typed(x.b, 5, datatype.Basic(datatype.Byte)), x.right, 0))
	}},
	{"in place of what", mpierr.Buffer, func(x *badThings) error { return x.c.Send(InPlace, x.right, 0) }},
}

var badCollectives = []bad{
	{"Bcast from rank 2", mpierr.Root, func(x *badThings) error { return Bcast(x.c, x.b, 2) }},
	{"Reduce to rank -1", mpierr.Root, func(x *badThings) error { return Reduce(x.c, x.b, make([]byte, 4), Max, -1) }},
	{"Gather at ROOT", mpierr.Root, func(x *badThings) error { return Gather(x.c, x.b, make([]byte, 8), -4) }},
	{"Scatter from PROC_NULL", mpierr.Root, func(x *badThings) error { return Scatter(x.c, make([]byte, 8), x.b, ProcNull) }},
	{"Ibcast from rank 2", mpierr.Root, func(x *badThings) error { return second(Ibcast(x.c, x.b, 2)) }},
	{"Bcast of a Buffer from rank 2", mpierr.Root, func(x *badThings) error { return x.c.Bcast(Of(x.b), 2) }},
	{"Allreduce by no operation", mpierr.Op, func(x *badThings) error { return Allreduce(x.c, x.b, make([]byte, 4), nil) }},
	{"Allreduce of floats by BAND", mpierr.Op, func(x *badThings) error { return Allreduce(x.c, []float64{1}, []float64{0}, BAnd) }},
	{"Bcast of an uncommitted datatype", mpierr.Type, func(x *badThings) error { return x.c.Bcast(Typed(x.b, 1, x.uncommitted), 0) }},
	{"Alltoall of parts that are none", mpierr.Buffer, func(x *badThings) error { return Alltoall(x.c, x.b[:3], make([]byte, 3)) }},
	{"Allgatherv with a negative count", mpierr.Count, func(x *badThings) error { return Allgatherv(x.c, x.b, make([]byte, 8), []int{4, -4}, nil) }},
	{"Allgatherv with counts of three", mpierr.Count, func(x *badThings) error { return Allgatherv(x.c, x.b, make([]byte, 8), []int{4, 4, 0}, nil) }},
}

var badComms = []bad{
	{"Split with colour -5", mpierr.Arg, func(x *badThings) error { return second(x.c.Split(-5, 0)) }},
	{"Create of no group", mpierr.Group, func(x *badThings) error { return second(x.c.Create(nil)) }},
	{"Free of WORLD", mpierr.Comm, func(x *badThings) error { return (*Comm)(x.c.in().Process().Comms.World).Free() }},
	{"Disconnect of SELF", mpierr.Comm, func(x *badThings) error { return (*Comm)(x.c.in().Process().Comms.Self).Disconnect() }},
	{"RemoteSize of an intracommunicator", mpierr.Comm, func(x *badThings) error { return second(x.c.RemoteSize()) }},
	{"Merge of an intracommunicator", mpierr.Comm, func(x *badThings) error { return second(x.c.Merge(true)) }},
	{"Compare with a freed one", mpierr.Comm, func(x *badThings) error { return second(x.c.Compare(x.freed)) }},
	{"grid of more places than ranks", mpierr.Dims, func(x *badThings) error { return second(x.c.CartCreate([]int{3}, []bool{false}, false)) }},
	{"place in no grid", mpierr.Topology, func(x *badThings) error { return second(x.c.CartRank([]int{0})) }},
	{"error handler nil", mpierr.Errhandler, func(x *badThings) error { return x.c.SetErrhandler(nil) }},
}

var badAttrs = []bad{
	{"set of TAG_UB", mpierr.Keyval, func(x *badThings) error { return x.c.SetAttr(TagUB, 1) }},
	{"delete of TAG_UB", mpierr.Keyval, func(x *badThings) error { return x.c.DeleteAttr(TagUB) }},
	{"get of KEYVAL_INVALID", mpierr.Keyval, func(x *badThings) error { return third(x.c.Attr(KeyvalInvalid)) }},
	{"set of a type's", mpierr.Keyval, func(x *badThings) error { return x.c.SetAttr(x.key, 1) }},
	{"get of a type's", mpierr.Keyval, func(x *badThings) error { return third(x.c.Attr(x.key)) }},
}

func newBadThings(c *Comm, key Keyval) (x *badThings, err error) {
	x = &badThings{c: c, right: (c.Rank() + 1) % c.Size(), b: make([]byte, 4), key: key}
	var errs [6]error
	if x.freed, errs[0] = c.Dup(); errs[0] == nil {
		errs[0] = x.freed.Free()
	}
	x.uncommitted, errs[1] = datatype.Contiguous(2, datatype.Basic(datatype.Byte))
	x.inactive, errs[2] = SendInit(c, x.b, x.right, 0)
	x.done, errs[3] = Irecv(c, make([]byte, 1), c.Rank(), 7)
	x.active, errs[4] = RecvInit(c, make([]byte, 1), c.Rank(), 8)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	q := x.done
	return x, errors.Join(Send(c, []byte{1}, c.Rank(), 7), waitFor(q), x.active.Start())
}

// works reports whether messages and collectives of c arrive still.
func works(c *Comm) error {
	in, sum := []int{-1}, []int{0}
	_, err := Sendrecv(c, []int{c.Rank()}, 1-c.Rank(), 3, in, 1-c.Rank(), 3)
	return first(err, Allreduce(c, []int{c.Rank() + 1}, sum, Sum), expect("received", in[0], 1-c.Rank()), expect("sum", sum[0], 3))
}

// Each bad call gives its class to the handler, once, and to the caller, and
// harms nothing: inside a site and across two.
func TestBadArguments(t *testing.T) {
	key, err := CreateTypeKeyval(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for clients := 1; clients <= 2; clients++ {
		l := layout{procs: 2, tagUB: 40_000, data: sameOrder, client: func(rank int) int { return rank % clients }}
		l.run(t, func(t *testing.T, world *Comm) error {
			c, err := world.Dup()
			if err != nil {
				return err
			}
			x, err := newBadThings(c, key)
			if err != nil {
				return err
			}
			heard := newListener(t)
			for _, d := range []*Comm{c, world, (*Comm)(world.in().Process().Comms.Self)} {
				heard.on(t, d)
			}
			for _, about := range slices.Sorted(maps.Keys(badCalls)) {
				for _, row := range badCalls[about] {
					if err := row.check(x, heard); err != nil {
						return fmt.Errorf("%s: %s: %w", about, row.what, err)
					}
				}
			}
			return first(Send(c, []byte{1}, c.Rank(), 8), waitFor(x.active))
		})
	}
}

// check makes the call, and others.
func (row *bad) check(x *badThings, l *listener) error {
	if err := row.told(x, l); err != nil {
		return err
	}
	if err := works(x.c); err != nil || l.errs != nil {
		return fmt.Errorf("the communicator works no more: %w; heard %v", err, l.errs)
	}
	return nil
}

// told makes the call.
func (row *bad) told(x *badThings, l *listener) error {
	err := row.call(x)
	heard := l.errs
	l.errs = nil
	switch {
	case err == nil:
		return errors.New("it succeeds")
	case ErrorClass(err) != row.want:
		return fmt.Errorf("class %v, want %v: %w", ErrorClass(err), row.want, err)
	case len(heard) != 1 || heard[0] != err:
		return fmt.Errorf("the handler has heard %v of %w", heard, err)
	case !strings.HasPrefix(err.Error(), "mpi.") || strings.Count(err.Error(), "mpi.") != 1:
		return fmt.Errorf("it does not tell the function once: %w", err)
	}
	return nil
}

// Nothing can be done with a communicator that is none, and nothing breaks: every
// method says COMM, once, to the handler of calls without a communicator.
func TestMethodsOfNoCommunicator(t *testing.T) {
	p := layout{}.start(t)[0]
	program(t, p)
	freed, err := (*Comm)(p.Comms.World).Dup()
	if err != nil {
		t.Fatal(err)
	}
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	onFreed := newListener(t)
	freed.in().State().Handler.Set.Store(onFreed.h.in())
	l := newListener(t).on(t, (*Comm)(p.Comms.World))
	for what, c := range map[string]*Comm{"nil": nil, "freed": freed} {
		for name, err := range methods(reflect.ValueOf(c)) {
			if ErrorClass(err) != mpierr.Comm || len(l.errs) != 1 || l.c != (*Comm)(p.Comms.World) || !strings.HasPrefix(fmt.Sprint(err), "mpi.") {
				t.Errorf("%s of a %s communicator: %v; heard %v", name, what, err, l.errs)
			}
			l.errs = nil
		}
	}
	if onFreed.errs != nil {
		t.Errorf("the handler of what is freed hears of %v", onFreed.errs)
	}
}

// methods calls each method of x that can fail with zeros and good buffers, and gives the errors.
func methods(x reflect.Value) func(yield func(string, error) bool) {
	failing := reflect.TypeFor[error]()
	return func(yield func(string, error) bool) {
		for i := range x.NumMethod() {
			m := x.Method(i)
			out := m.Type().NumOut()
			if out == 0 || m.Type().Out(out-1) != failing {
				continue
			}
			args := make([]reflect.Value, m.Type().NumIn())
			for k := range args {
				if args[k] = reflect.Zero(m.Type().In(k)); m.Type().In(k) == reflect.TypeFor[Buffer]() {
					args[k] = reflect.ValueOf(Of([]byte{1}))
				}
			}
			err, _ := m.Call(args)[out-1].Interface().(error)
			if !yield(x.Type().Method(i).Name, err) {
				return
			}
		}
	}
}

// The same of the other sorts of objects, where a method can fail at all.
func TestMethodsOfNothing(t *testing.T) {
	p := layout{}.start(t)[0]
	program(t, p)
	l := newListener(t).on(t, (*Comm)(p.Comms.World))
	for _, x := range []struct {
		object any
		want   Class
	}{
		{(*Group)(nil), mpierr.Group}, {(*Info)(nil), mpierr.Info}, {(*Errhandler)(nil), mpierr.Errhandler}, {(*Message)(nil), mpierr.Request}, {(*Win)(nil), mpierr.Win},
	} {
		for name, err := range methods(reflect.ValueOf(x.object)) {
			if ErrorClass(err) != x.want || len(l.errs) != 1 {
				t.Errorf("%s of a nil %T: %v; heard %v", name, x.object, err, l.errs)
			}
			l.errs = nil
		}
	}
}
