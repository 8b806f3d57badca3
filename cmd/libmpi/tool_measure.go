//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/abi/handles"
)

// Classes of performance variables.
const (
	classLevel   = 2
	classCounter = 7
)

// measure is a performance variable: an unsigned long long that counts from MPI_Init
// on, or tells how things are. All are read-only and always run.
type measure struct {
	name, desc string
	class      int32
	value      func(f *mpi.Figures) uint64
}

var measures = [...]measure{
	{"impi_messages_sent", "messages to other procs and to this one", classCounter, func(f *mpi.Figures) uint64 { return f.Messages }},
	{"impi_requests_completed", "sends and receives that are complete, those of the library's own included", classCounter, func(f *mpi.Figures) uint64 { return f.Completed }},
	{"impi_bytes_sent", "bytes that have left by sockets and rings", classCounter, func(f *mpi.Figures) uint64 { return f.Sent }},
	{"impi_bytes_received", "bytes that have come by sockets and rings", classCounter, func(f *mpi.Figures) uint64 { return f.Received }},
	{"impi_links", "links to other procs, without an agent between", classLevel, func(f *mpi.Figures) uint64 { return uint64(f.Links) }},
	{"impi_unexpected_messages", "messages that wait for a receive", classLevel, func(f *mpi.Figures) uint64 { return uint64(f.Unexpected) }},
	{"impi_posted_receives", "receives that wait for a message", classLevel, func(f *mpi.Figures) uint64 { return uint64(f.Posted) }},
	{"impi_buffered_bytes", "bytes of the memory of MPI_Buffer_attach that are taken", classLevel, func(f *mpi.Figures) uint64 { return uint64(f.Buffered) }},
}

// allHandles is MPI_T_PVAR_ALL_HANDLES.
const allHandles = 1

// measureHandle is a handle of a performance variable.
type measureHandle struct {
	v       *measure
	session uintptr
}

var (
	measureHandles = handles.NewTable[measureHandle](handles.ToolMeasure)
	toolSessions   = handles.NewTable[struct{}](handles.ToolSession)
)

//export abiTPvarGetNum
func abiTPvarGetNum(out uintptr) int32 { return toolNumber(out, len(measures)) }

//export abiTPvarGetIndex
func abiTPvarGetIndex(name uintptr, class int32, out uintptr) int32 {
	return toolIndex(name, out, len(measures), func(i int) string {
		if measures[i].class != class {
			return ""
		}
		return measures[i].name
	})
}

//export abiTPvarGetInfo
func abiTPvarGetInfo(index int32, name, nameLen, verbosity, class, t, enumtype, desc, descLen, bind, readonly, continuous, atomic uintptr) int32 {
	return tooled(func() int32 {
		if index < 0 || int(index) >= len(measures) {
			return toolInvalidIndex
		}
		v := &measures[index]
		tellText(name, nameLen, v.name)
		tell(verbosity, int32(verbosityUser))
		tell(class, v.class)
		tell(t, uintptr(typeUnsignedLongLong))
		tell(enumtype, uintptr(enumNull))
		tellText(desc, descLen, v.desc)
		tell(bind, int32(bindNothing))
		tell(readonly, int32(1))
		tell(continuous, int32(1))
		tell(atomic, int32(0))
		return success
	})
}

//export abiTPvarSessionCreate
func abiTPvarSessionCreate(out uintptr) int32 {
	return tooled(func() int32 {
		if out < firstAddress {
			return toolInvalid
		}
		h := toolSessions.Add(struct{}{})
		if h == 0 {
			return toolMemory
		}
		tell(out, h)
		return success
	})
}

//export abiTPvarSessionFree
func abiTPvarSessionFree(p uintptr) int32 {
	return tooled(func() int32 {
		if p < firstAddress {
			return toolInvalid
		}
		s := *(*uintptr)(pointer(p))
		if !toolSessions.Free(s) {
			return toolInvalidSession
		}
		toolLock.Lock()
		defer toolLock.Unlock()
		var mine []uintptr
		measureHandles.Each(func(h uintptr, m *measureHandle) {
			if m.session == s {
				mine = append(mine, h)
			}
		})
		for _, h := range mine {
			measureHandles.Free(h)
		}
		tell(p, uintptr(0))
		return success
	})
}

//export abiTPvarHandleAlloc
func abiTPvarHandleAlloc(s uintptr, index int32, object, out, count uintptr) int32 {
	return tooled(func() int32 {
		switch {
		case toolSessions.Get(s) == nil:
			return toolInvalidSession
		case index < 0 || int(index) >= len(measures):
			return toolInvalidIndex
		case out < firstAddress:
			return toolInvalid
		}
		toolLock.Lock()
		defer toolLock.Unlock()
		h := measureHandles.Add(measureHandle{&measures[index], s})
		if h == 0 {
			return toolMemory
		}
		tell(count, int32(1))
		tell(out, h)
		return success
	})
}

// onMeasure is a call on a handle of a performance variable, in its session. v is nil
// if it is of all handles, which not every call knows.
func onMeasure(s, h uintptr, all bool, f func(v *measure) int32) int32 {
	return tooled(func() int32 {
		if toolSessions.Get(s) == nil {
			return toolInvalidSession
		}
		if h == allHandles && all {
			return f(nil)
		}
		m := measureHandles.Get(h)
		if m == nil || m.session != s {
			return toolInvalidHandle
		}
		return f(m.v)
	})
}

//export abiTPvarHandleFree
func abiTPvarHandleFree(s, p uintptr) int32 {
	if p < firstAddress {
		return tooled(func() int32 { return toolInvalid })
	}
	return tooled(func() int32 {
		h := *(*uintptr)(pointer(p))
		return onMeasure(s, h, false, func(*measure) int32 {
			measureHandles.Free(h)
			tell(p, uintptr(0))
			return success
		})
	})
}

// refused is a call that no variable here allows. Of all handles those are left out.
func refused(s, h uintptr, code int32) int32 {
	return onMeasure(s, h, true, func(v *measure) int32 {
		if v == nil {
			return success
		}
		return code
	})
}

//export abiTPvarStart
func abiTPvarStart(s, h uintptr) int32 { return refused(s, h, toolNoStartStop) }

//export abiTPvarStop
func abiTPvarStop(s, h uintptr) int32 { return refused(s, h, toolNoStartStop) }

//export abiTPvarReset
func abiTPvarReset(s, h uintptr) int32 { return refused(s, h, toolNoWrite) }

//export abiTPvarWrite
func abiTPvarWrite(s, h, buf uintptr) int32 {
	return onMeasure(s, h, false, func(*measure) int32 { return toolNoWrite })
}

//export abiTPvarReadreset
func abiTPvarReadreset(s, h, buf uintptr) int32 {
	return onMeasure(s, h, false, func(*measure) int32 { return toolNoWrite })
}

//export abiTPvarRead
func abiTPvarRead(s, h, buf uintptr) int32 {
	return onMeasure(s, h, false, func(v *measure) int32 {
		if buf < firstAddress {
			return toolInvalid
		}
		var n uint64
		if f, err := mpi.Measure(); err == nil { // else there is nothing yet, or any more
			n = v.value(&f)
		}
		tell(buf, n)
		return success
	})
}
