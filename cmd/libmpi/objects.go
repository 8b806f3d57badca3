//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/abi/handles"
)

// Constant handles of the ABI.
const (
	opNull         = 0x020
	commNull       = 0x100
	commWorld      = 0x101
	commSelf       = 0x102
	groupNull      = 0x108
	groupEmpty     = 0x109
	winNull        = 0x110
	fileNull       = 0x118
	sessionNull    = 0x120
	messageNull    = 0x128
	messageNoProc  = 0x129
	infoNull       = 0x130
	infoEnv        = 0x131
	errhandlerNull = 0x140
	requestNull    = 0x180
	datatypeNull   = 0x200
	datatypes      = 0x400 // the first handle after all constants
)

// object is the part of an object with an error handler that the C library adds.
type object struct {
	sort    string // kind of its error handlers: "Comm", "Win", "File" or "Session"
	handle  uintptr
	handler atomic.Pointer[errhandler]
}

type commObject struct {
	*mpi.Comm
	object
	ints     atomic.Pointer[[predefinedKeys]int32] // values of predefined attributes, in C's memory
	attached attachment
	session  *sessionObject // the session that it was made from; nil: none
	serves   atomic.Bool    // buffered sends use this session's buffer
}

type requestObject struct {
	q     mpi.Request
	owner *object                     // its handler receives errors; nil: the handler for calls without an object
	again func() (mpi.Request, error) // starts a persistent collective operation again
	kept  *retained                   // copied arguments of the persistent operation
}

// The objects for which C programs have handles.
var (
	comms       = handles.NewTable[*commObject](handles.Comm)
	groups      = handles.NewTable[*mpi.Group](handles.Group)
	types       = handles.NewTable[*mpi.Datatype](handles.Datatype)
	ops         = handles.NewTable[mpi.Op](handles.Op)
	requests    = handles.NewTable[requestObject](handles.Request)
	infos       = handles.NewTable[*mpi.Info](handles.Info)
	errhandlers = handles.NewTable[*errhandler](handles.Errhandler)
	wins        = handles.NewTable[*winObject](handles.Win)
	messages    = handles.NewTable[messageObject](handles.Message)
)

type messageObject struct {
	*mpi.Message
	owner *object
}

// world and self are set between Init and Finalize.
var world, self atomic.Pointer[commObject]

// The predefined datatypes and operations, by handle.
var (
	namedTypes [datatypes]*mpi.Datatype
	namedOps   = map[uintptr]mpi.Op{
		0x021: mpi.Sum, 0x022: mpi.Min, 0x023: mpi.Max, 0x024: mpi.Prod,
		0x028: mpi.BAnd, 0x029: mpi.BOr, 0x02a: mpi.BXor,
		0x030: mpi.LAnd, 0x031: mpi.LOr, 0x032: mpi.LXor,
		0x038: mpi.MinLoc, 0x039: mpi.MaxLoc, 0x03c: mpi.Replace, 0x03d: mpi.NoOp,
	}
	namedOpTable [64]mpi.Op
)

func init() {
	for h := range namedTypes {
		namedTypes[h] = datatype.ByHandle(h)
	}
	for h, op := range namedOps {
		namedOpTable[h] = op
	}
}

func kindOf(h uintptr) string {
	switch {
	case h == 0:
		return "0: the variable was never set"
	case h >= 0x020 && h < 0x040:
		return "an operation"
	case h >= 0x100 && h < 0x108:
		return "a communicator"
	case h >= 0x108 && h < 0x110:
		return "a group"
	case h >= 0x110 && h < 0x118:
		return "a window"
	case h >= 0x118 && h < 0x120:
		return "a file"
	case h >= 0x120 && h < 0x128:
		return "a session"
	case h >= 0x128 && h < 0x130:
		return "a message"
	case h >= 0x130 && h < 0x138:
		return "info"
	case h >= 0x140 && h < 0x148:
		return "an error handler"
	case h >= 0x180 && h < 0x188:
		return "a request"
	case h >= 0x200 && h < 0x400:
		return "a datatype"
	}
	return "it was freed, or MPI never returned it"
}

// bad returns the error of a handle that cannot be used. null is the null handle of its kind.
func bad(sentinel error, name string, h, null uintptr) error {
	if err := usable(); err != nil {
		return err
	}
	if h == null {
		return fmt.Errorf("%w: argument %s is the null handle", sentinel, name)
	}
	return fmt.Errorf("%w: argument %s is %#x: %s", sentinel, name, h, kindOf(h))
}

// commOf returns the communicator of a handle, or nil.
func commOf(h uintptr) *commObject {
	switch {
	case h == commWorld:
		return world.Load()
	case h == commSelf:
		return self.Load()
	}
	if p := comms.Get(h); p != nil {
		return *p
	}
	return nil
}

func takeComm(name string, h uintptr) (*commObject, error) {
	if c := commOf(h); c != nil {
		return c, nil
	}
	return nil, bad(comm.ErrComm, name, h, commNull)
}

// newComm makes the handle of a communicator, which may be nil, and gives it the error handler of
// like.
func newComm(c *mpi.Comm, like *commObject) uintptr {
	if c == nil {
		return commNull
	}
	o := &commObject{Comm: c, object: object{sort: "Comm"}}
	if like != nil {
		o.handler.Store(like.handler.Load())
		o.session = like.session
	}
	h, p := comms.New()
	if p == nil {
		return commNull
	}
	o.handle = h
	*p = o
	comms.Set(h)
	commHandles.Store(c, h)
	return h
}

func groupOf(name string, h uintptr) (*mpi.Group, error) {
	if h == groupEmpty {
		return mpi.GroupEmpty, nil
	}
	if p := groups.Get(h); p != nil {
		return *p, nil
	}
	return nil, bad(comm.ErrGroup, name, h, groupNull)
}

// newGroup makes the handle of a group that was made from a session, or from none.
func newGroup(g *mpi.Group, s *sessionObject) uintptr {
	if g.Size() == 0 {
		return groupEmpty
	}
	if s != nil {
		groupSessions.Store(g, s)
	}
	return groups.Add(g)
}

// groupSessions maps a *mpi.Group to the *sessionObject that it was made from.
var groupSessions sync.Map

// sessionOf returns the session from which a group was made, nil if there is none.
func sessionOf(gs ...*mpi.Group) *sessionObject {
	for _, g := range gs {
		if s, ok := groupSessions.Load(g); ok {
			return s.(*sessionObject)
		}
	}
	return nil
}

func typeOf(h uintptr) *mpi.Datatype {
	if h < datatypes {
		return namedTypes[h]
	}
	if p := types.Get(h); p != nil {
		return *p
	}
	return nil
}

func takeType(name string, h uintptr) (*mpi.Datatype, error) {
	if t := typeOf(h); t != nil {
		return t, nil
	}
	return nil, bad(datatype.ErrType, name, h, datatypeNull)
}

// typeHandles maps a *mpi.Datatype to its handle, for callbacks.
var typeHandles sync.Map

func newType(t *mpi.Datatype) uintptr {
	if h := t.Handle(); h != 0 {
		return uintptr(h)
	}
	h := types.Add(t)
	typeHandles.Store(t, h)
	return h
}

// typeHandle returns the handle of a datatype, MPI_DATATYPE_NULL if the library has made the
// datatype.
func typeHandle(t *mpi.Datatype) uintptr {
	if h := t.Handle(); h != 0 {
		return uintptr(h)
	}
	return known(&typeHandles, t, datatypeNull)
}

func opOf(h uintptr) (mpi.Op, error) {
	if h < uintptr(len(namedOpTable)) && namedOpTable[h] != nil {
		return namedOpTable[h], nil
	}
	if p := ops.Get(h); p != nil {
		return *p, nil
	}
	return nil, bad(datatype.ErrOp, "op", h, opNull)
}

// infoOf returns the info object of a handle, nil for MPI_INFO_NULL.
func infoOf(h uintptr) (*mpi.Info, error) {
	if h == infoNull {
		return nil, nil
	}
	return takeInfo(h)
}

// takeInfo is infoOf, but MPI_INFO_NULL is an error.
func takeInfo(h uintptr) (*mpi.Info, error) {
	if h == infoEnv {
		if i := mpi.InfoEnv(); i != nil {
			return i, nil
		}
	}
	if p := infos.Get(h); p != nil {
		return *p, nil
	}
	if h == infoNull {
		return nil, fmt.Errorf("%w: argument info is the null handle", mpi.ErrInfo)
	}
	return nil, fmt.Errorf("%w: argument info is %#x: %s", mpi.ErrInfo, h, kindOf(h))
}

func winOf(h uintptr) *winObject {
	if p := wins.Get(h); p != nil {
		return *p
	}
	return nil
}

func badWin(h uintptr) error { return bad(rma.ErrWin, "win", h, winNull) }

// buffer is the memory of a message. The call of core/mpi checks it; this function only refuses
// constants that are no addresses.
func buffer(p uintptr, count int64, t uintptr) (mpi.Buffer, error) {
	dt := typeOf(t)
	if dt == nil {
		_, err := takeType("datatype", t)
		return mpi.Buffer{}, err
	}
	if p < firstAddress && p != 0 {
		return mpi.Buffer{}, fmt.Errorf("%w: argument buf is %#x, which is no address", mpi.ErrBuffer, p)
	}
	return mpi.At(pointer(p), int(count), dt), nil
}

// use is how much of a buffer's memory must exist.
type use int

const (
	none  use = iota
	first     // only its beginning, since the message may be shorter than the buffer
	all
)

func sends(dst int32) use {
	if dst == mpi.ProcNull {
		return none
	}
	return all
}

func receives(src int32) use { return min(sends(src), first) }

// used is buffer of memory that must exist: it is touched here, so that a fault ends this call, and
// not one of a link later.
func used(p uintptr, count int64, t uintptr, u use) (mpi.Buffer, error) {
	if n := count * fastBoxWidth(t); n > 0 && count <= math.MaxInt32 && p >= firstAddress { // the usual case
		if u != none {
			touch(pointer(p))
		}
		if u == all {
			touchAll(p, n)
		}
		return mpi.At(pointer(p), int(count), namedTypes[t]), nil
	}
	b, err := buffer(p, count, t)
	if err != nil || u == none {
		return b, err
	}
	lo, hi, bad := typeOf(t).Span(int(count))
	if bad != nil || !typeOf(t).Committed() || lo == hi || p+uintptr(lo) < firstAddress {
		return b, nil // the MPI call reports the error
	}
	touch(pointer(p + uintptr(lo)))
	if u != all {
		return b, nil
	}
	if _, whole := typeOf(t).Run(int(count)); whole {
		touchAll(p+uintptr(lo), hi-lo)
	} else {
		touch(pointer(p + uintptr(hi) - 1)) // there may be no memory between the items
	}
	return b, nil
}

// buffer2 is buffer, but also takes MPI_IN_PLACE.
func buffer2(p uintptr, count int64, t uintptr) (mpi.Buffer, error) {
	if p == inPlace {
		return mpi.InPlace, nil
	}
	return used(p, count, t, all)
}
