package mpi

import (
	"errors"
	"reflect"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// loose is everything of badThings that a process needs nobody else for.
func (x *badThings) loose() (err error) {
	var errs [7]error
	x.buffer = (*SendBuffer)(x.c.in().Process().SendBuffer())
	x.group, errs[0] = x.c.Group()
	x.gone, errs[1] = x.group.Incl([]int{0})
	x.info, x.nothing = NewInfo(), NewInfo()
	x.taken, _, errs[2] = Mprobe(x.c, ProcNull, 0)
	_, errs[3] = x.taken.Recv(Of(x.b))
	x.handler, errs[4] = NewErrhandler(func(*Comm, error) {})
	x.dead, errs[5] = datatype.Contiguous(1, datatype.Basic(datatype.Byte))
	x.ofComms, errs[6] = CreateKeyval(nil, nil, nil)
	return errors.Join(errors.Join(errs[:]...), x.gone.Free(), x.nothing.Free(), x.handler.Free(), x.dead.Commit(), x.dead.Free())
}

// badLoose are calls without a communicator, or on objects that have none. They are
// made by a job of one.
var badLoose = map[string][]bad{
	"groups": badGroups, "info": badInfos, "datatypes": badTypes, "keys": badKeys, "codes": badCodes, "others": badOthers,
}

var badGroups = []bad{
	{"Check of a freed one", mpierr.Group, func(x *badThings) error { return x.gone.Check() }},
	{"Free of a freed one", mpierr.Group, func(x *badThings) error { return x.gone.Free() }},
	{"Compare with a freed one", mpierr.Group, func(x *badThings) error { return second(x.group.Compare(x.gone)) }},
	{"Union with a freed one", mpierr.Group, func(x *badThings) error { return second(x.group.Union(x.gone)) }},
	{"Intersection with none", mpierr.Group, func(x *badThings) error { return second(x.group.Intersection(nil)) }},
	{"Difference with none", mpierr.Group, func(x *badThings) error { return second(x.group.Difference(nil)) }},
	{"Incl of rank 1", mpierr.Rank, func(x *badThings) error { return second(x.group.Incl([]int{1})) }},
	{"Incl of rank 0 twice", mpierr.Arg, func(x *badThings) error { return second(x.group.Incl([]int{0, 0})) }},
	{"Excl of rank -1", mpierr.Rank, func(x *badThings) error { return second(x.group.Excl([]int{-1})) }},
	{"RangeIncl without a stride", mpierr.Arg, func(x *badThings) error { return second(x.group.RangeIncl([]Range{{First: 0, Last: 1}})) }},
	{"RangeExcl of rank 1", mpierr.Rank, func(x *badThings) error {
		return second(x.group.RangeExcl([]Range{{First: 0, Last: 1, Stride: 1}}))
	}},
	{"Translate of rank 1", mpierr.Rank, func(x *badThings) error { return second(x.group.Translate([]int{1}, x.group)) }},
}

var badInfos = []bad{
	{"Set of an empty key", mpierr.InfoKey, func(x *badThings) error { return x.info.Set("", "v") }},
	{"Get of an empty key", mpierr.InfoKey, func(x *badThings) error { return third(x.info.Get("")) }},
	{"GetUpTo -1", mpierr.Arg, func(x *badThings) error { return third(x.info.GetUpTo("k", -1)) }},
	{"GetString of room -1", mpierr.Arg, func(x *badThings) error { return fourth(x.info.GetString("k", -1)) }},
	{"Delete of what is not there", mpierr.InfoNoKey, func(x *badThings) error { return x.info.Delete("k") }},
	{"Key 0 of none", mpierr.Arg, func(x *badThings) error { return second(x.info.Key(0)) }},
	{"Len of a freed one", mpierr.Info, func(x *badThings) error { return second(x.nothing.Len()) }},
	{"Dup of a freed one", mpierr.Info, func(x *badThings) error { return second(x.nothing.Dup()) }},
	{"Free of a freed one", mpierr.Info, func(x *badThings) error { return x.nothing.Free() }},
}

var badTypes = []bad{
	{"TypeContiguous of a freed one", mpierr.Type, func(x *badThings) error { return second(TypeContiguous(1, x.dead)) }},
	{"TypeVector of count -1", mpierr.Count, func(x *badThings) error { return second(TypeVector(-1, 1, 1, TypeOf[byte]())) }},
	{"TypeHvector of length -1", mpierr.Count, func(x *badThings) error { return second(TypeHvector(1, -1, 1, TypeOf[byte]())) }},
	{"TypeIndexed of unequal lists", mpierr.Arg, func(x *badThings) error { return second(TypeIndexed([]int64{1}, nil, TypeOf[byte]())) }},
	{"TypeHindexed of length -1", mpierr.Count, func(x *badThings) error { return second(TypeHindexed([]int64{-1}, []int64{0}, TypeOf[byte]())) }},
	{"TypeIndexedBlock of length -1", mpierr.Count, func(x *badThings) error { return second(TypeIndexedBlock(-1, []int64{0}, TypeOf[byte]())) }},
	{"TypeHindexedBlock of none", mpierr.Type, func(x *badThings) error { return second(TypeHindexedBlock(1, []int64{0}, nil)) }},
	{"TypeStruct of none", mpierr.Type, func(x *badThings) error { return second(TypeStruct([]int64{1}, []int64{0}, []*Datatype{nil})) }},
	{"TypeResized of a freed one", mpierr.Type, func(x *badThings) error { return second(TypeResized(x.dead, 0, 1)) }},
	{"TypeSubarray beyond the array", mpierr.Arg, func(x *badThings) error {
		return second(TypeSubarray([]int64{2}, []int64{2}, []int64{1}, OrderC, TypeOf[byte]()))
	}},
	{"TypeDarray of rank 2 of 2", mpierr.Arg, func(x *badThings) error {
		spread := Spread{Size: 4, How: DistributeBlock, Arg: DistributeDefault, Procs: 2}
		return second(TypeDarray(2, 2, []Spread{spread}, OrderC, TypeOf[byte]()))
	}},
	{"TypeDup of a freed one", mpierr.Type, func(x *badThings) error { return second(TypeDup(x.dead)) }},
	{"TypeFree of a named one", mpierr.Type, func(x *badThings) error { return TypeFree(TypeOf[byte]()) }},
	{"PackExternal as native", mpierr.UnsupportedDatarep, func(x *badThings) error { return second(PackExternal("native", Of(x.b), make([]byte, 8), 0)) }},
	{"UnpackExternal of too little", mpierr.Truncate, func(x *badThings) error { return second(UnpackExternal("external32", nil, 0, Of(x.b))) }},
	{"PackExternalSize of count -1", mpierr.Count, func(x *badThings) error { return second(PackExternalSize("external32", -1, TypeOf[byte]())) }},
	{"AllocMem of size -1", mpierr.Arg, func(x *badThings) error { return second(AllocMem(-1)) }},
	{"Count of no type", mpierr.Type, func(x *badThings) error { return second(x.st.Count(nil)) }},
	{"Elements of a freed type", mpierr.Type, func(x *badThings) error { return second(x.st.Elements(x.dead)) }},
	{"SetElements -1", mpierr.Arg, func(x *badThings) error { return x.st.SetElements(TypeOf[byte](), -1) }},
}

var badKeys = []bad{
	{"FreeKeyval without a variable", mpierr.Arg, func(x *badThings) error { return FreeKeyval(nil) }},
	{"FreeKeyval of KEYVAL_INVALID", mpierr.Keyval, func(x *badThings) error { k := KeyvalInvalid; return FreeKeyval(&k) }},
	{"FreeKeyval of a type's", mpierr.Keyval, func(x *badThings) error { k := x.key; return FreeKeyval(&k) }},
	{"FreeTypeKeyval of a communicator's", mpierr.Keyval, func(x *badThings) error { k := x.ofComms; return FreeTypeKeyval(&k) }},
	{"FreeWinKeyval of WIN_BASE", mpierr.Keyval, func(x *badThings) error { k := WinBase; return FreeWinKeyval(&k) }},
	{"TypeSetAttr of a communicator's", mpierr.Keyval, func(x *badThings) error { return TypeSetAttr(TypeOf[byte](), x.ofComms, 1) }},
	{"TypeAttr of a freed type", mpierr.Type, func(x *badThings) error { return third(TypeAttr(x.dead, x.key)) }},
	{"TypeDeleteAttr of KEYVAL_INVALID", mpierr.Keyval, func(x *badThings) error { return TypeDeleteAttr(TypeOf[byte](), KeyvalInvalid) }},
}

var badCodes = []bad{
	{"AddErrorCode of no class", mpierr.Arg, func(x *badThings) error { return second(AddErrorCode(1 << 30)) }},
	{"AddErrorString of MPI's", mpierr.Arg, func(x *badThings) error { return AddErrorString(mpierr.Rank, "x") }},
	{"RemoveErrorClass of MPI's", mpierr.Arg, func(x *badThings) error { return RemoveErrorClass(mpierr.Rank) }},
	{"RemoveErrorCode of none", mpierr.Arg, func(x *badThings) error { return RemoveErrorCode(1 << 30) }},
	{"RemoveErrorString of none", mpierr.Arg, func(x *badThings) error { return RemoveErrorString(1 << 30) }},
	{"ErrorString of none", mpierr.Arg, func(x *badThings) error { return second(ErrorString(1 << 30)) }},
	{"ClassOf -1", mpierr.Arg, func(x *badThings) error { return second(ClassOf(-1)) }},
}

var badOthers = []bad{
	{"NewErrhandler of no function", mpierr.Arg, func(x *badThings) error { return second(NewErrhandler(nil)) }},
	{"NewWinErrhandler of no function", mpierr.Arg, func(x *badThings) error { return second(NewWinErrhandler(nil)) }},
	{"Free of a freed handler", mpierr.Errhandler, func(x *badThings) error { return x.handler.Free() }},
	{"SetDefaultErrhandler of a freed one", mpierr.Errhandler, func(x *badThings) error { return SetDefaultErrhandler(x.handler) }},
	{"SendBuffer of -1", mpierr.Buffer, func(x *badThings) error { return x.buffer.Attach(-1) }},
	{"SendBuffer of a freed communicator", mpierr.Comm, func(x *badThings) error { return x.buffer.Serve(x.freed) }},
	{"BufferAttach of -1", mpierr.Buffer, func(x *badThings) error { return BufferAttach(-1) }},
	{"DimsCreate of 7 in 2 by any", mpierr.Dims, func(x *badThings) error { return DimsCreate(7, []int{2, 0}) }},
	{"ReduceLocal by no operation", mpierr.Op, func(x *badThings) error { return ReduceLocal([]int{1}, []int{2}, nil) }},
	{"ReduceLocalItems of one and two", mpierr.Arg, func(x *badThings) error { return ReduceLocalItems(Of([]int{1}), Of([]int{1, 2}), Sum) }},
	{"Complete of what is not generalized", mpierr.Request, func(x *badThings) error { return x.active.Complete() }},
	{"Complete of nothing", mpierr.Request, func(x *badThings) error { return x.null.Complete() }},
	{"Cancel of nothing", mpierr.Request, func(x *badThings) error { return x.null.Cancel() }},
	{"Start of nothing", mpierr.Request, func(x *badThings) error { return x.null.Start() }},
	{"Free of nothing", mpierr.Request, func(x *badThings) error { return x.null.Free() }},
	{"Recv of a message that was received", mpierr.Request, func(x *badThings) error { return second(x.taken.Recv(Of(x.b))) }},
	{"Irecv of it", mpierr.Request, func(x *badThings) error { return second(x.taken.Irecv(Of(x.b))) }},
	{"Mrecv of it", mpierr.Request, func(x *badThings) error { return second(Mrecv(x.taken, x.b)) }},
	{"Imrecv of it", mpierr.Request, func(x *badThings) error { return second(Imrecv(x.taken, x.b)) }},
}

// Each bad call without a communicator gives its class to the handler of such calls,
// once, and to the caller, and harms nothing.
func TestLooseBadArguments(t *testing.T) {
	p := layout{tagUB: 40_000}.start(t)[0]
	program(t, p)
	key, err := CreateTypeKeyval(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := newBadThings((*Comm)(p.Comms.World), key)
	if err = errors.Join(err, x.loose()); err != nil {
		t.Fatal(err)
	}
	heard := newListener(t).on(t, (*Comm)(p.Comms.World))
	for about, rows := range badLoose {
		for _, row := range rows {
			if err := row.told(x, heard); err != nil {
				t.Errorf("%s: %s: %v", about, row.what, err)
			}
		}
	}
	if err := Barrier((*Comm)(p.Comms.World)); err != nil || x.group.Size() != 1 {
		t.Errorf("it has harmed something: %v, %d", err, x.group.Size())
	}
}

// Nothing can be done with an object that was freed: every method says so, once.
func TestMethodsOfFreed(t *testing.T) {
	p := layout{}.start(t)[0]
	program(t, p)
	l := newListener(t).on(t, (*Comm)(p.Comms.World))
	group, err1 := (*Comm)(p.Comms.World).Group()
	win, err2 := (*Comm)(p.Comms.World).WinAllocate(8, 1, nil)
	handler, err3 := NewErrhandler(func(*Comm, error) {})
	info := NewInfo()
	if err := errors.Join(err1, err2, err3, group.Free(), win.Free(), handler.Free(), info.Free()); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		object any
		want   Class
	}{{group, mpierr.Group}, {win, mpierr.Win}, {handler, mpierr.Errhandler}, {info, mpierr.Info}} {
		for name, err := range methods(reflect.ValueOf(x.object)) {
			if ErrorClass(err) != x.want || len(l.errs) != 1 {
				t.Errorf("%s of a freed %T: %v; heard %v", name, x.object, err, l.errs)
			}
			l.errs = nil
		}
	}
}
