//go:build cgo && !386 && !arm

package main

/*
#include "fastpath.h"
#include "measure.h"
*/
import "C"

import (
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/abi/handles"
	measure "github.com/openimpi/impi/internal/engine/calls"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// shared is the memory by which C sends and receives short messages itself.
var shared = (*fastpath.Memory)(unsafe.Pointer(&C.impi_fast_path))

// shareFastPath tells C which predefined types have the same bytes in all languages on this
// machine, and makes the proc share its fast boxes. It is part of MPI_Init.
func shareFastPath() {
	for h, t := range namedTypes {
		if t == nil {
			continue
		}
		if kind, plain := t.Plain(); plain && (datatype.HostOrder().Identity(kind) || kind == datatype.Bool) && t.Size() <= math.MaxUint8 {
			C.impi_width[h], C.impi_kind[h] = C.uint8_t(t.Size()), C.uint8_t(kind)
			if s := sortOfNumber(kind); s != 0 {
				C.impi_number[h] = C.uint8_t(s | int(t.Size()))
			}
		}
	}
	for h, t := range namedTypes {
		if t == nil || C.impi_width[h] == 0 {
			continue
		}
		if kind, plain := t.Plain(); plain {
			if n, ok := collective.NativeType(kind); ok {
				C.impi_site_type[h] = C.uint8_t(n + 1)
			}
		}
	}
	for h, op := range namedOps {
		if n, ok := collective.NativeOp(op); ok && h < C.OP_HANDLES {
			C.impi_site_op[h] = C.uint8_t(n + 1)
		}
		if i := slices.Index(opsOfC, op); i >= 0 && h < C.OP_HANDLES {
			C.impi_op[h] = C.uint8_t(i)
		}
	}
	proc.UseFastPath(shared, func(buf unsafe.Pointer, n int64) {
		learnMemory(uintptr(buf), min(n, longest()), true)
	})
}

// opsOfC are the operations that C has, by its numbers for them.
var opsOfC = []mpi.Op{
	C.SUM: mpi.Sum, C.PROD: mpi.Prod, C.MAX: mpi.Max, C.MIN: mpi.Min, C.LAND: mpi.LAnd, C.LOR: mpi.LOr, C.LXOR: mpi.LXor,
	C.BAND: mpi.BAnd, C.BOR: mpi.BOr, C.BXOR: mpi.BXor,
}

// sortOfNumber says how C combines numbers of a kind, 0 if it leaves that to Go.
func sortOfNumber(k datatype.Kind) int {
	switch k {
	case datatype.Int8, datatype.Int16, datatype.Int32, datatype.Int64, datatype.Int, datatype.Long:
		return C.SIGNED
	case datatype.Uint8, datatype.Uint16, datatype.Uint32, datatype.Uint64, datatype.Uint, datatype.ULong:
		return C.UNSIGNED
	case datatype.Float32, datatype.Float64:
		return C.FLOAT
	case datatype.Byte:
		return C.BITS
	case datatype.Bool: // a byte
		return C.TRUTH
	}
	return 0
}

// collectByC is collect for an operation that C can do by itself on the board. It tells C what this
// call has found out: the communicator's place there, and that there is memory.
func collectByC(fn string, which int32, c uintptr, take argumentReader, do func(c *commObject, a arguments) error) int32 {
	return collect(fn, which, c, take, func(c *commObject, a arguments) error {
		err := do(c, a)
		if err == nil && shared.Used != 0 && !c.Inter() {
			(*proc.Comm)(c.Comm).FastPath(c.handle)
			learnBuffer(a.send.buf, false, true)
			learnBuffer(a.recv.buf, true, !proc.Buffer(a.send.buf).InPlace())
		}
		return err
	})
}

// startByC is start for an operation that C can start by itself on the board.
func startByC(fn string, which int32, c, q uintptr, take argumentReader, do starter) int32 {
	var begun *commObject
	var with arguments
	code := start(fn, which, c, q, take, func(c *commObject, a arguments) (mpi.Request, error) {
		begun, with = c, a
		return do(c, a)
	})
	if code == success && shared.Used != 0 && !begun.Inter() {
		(*proc.Comm)(begun.Comm).FastPath(begun.handle)
		learnUnread(with.send.buf)
		learnBuffer(with.recv.buf, true, false)
		learnMemory(q, int64(unsafe.Sizeof(q)), true)
	}
	return code
}

// learnUnread tells C that a buffer can be read, if that is so.
func learnUnread(b mpi.Buffer) {
	if (*proc.Buffer)(&b).Memory() == nil {
		return
	}
	mem, _, ok := (*proc.Buffer)(&b).Plain()
	if ok && len(mem) < fastpath.BoardStartLimit && readable(mem) {
		learnMemory(uintptr(unsafe.Pointer(&mem[0])), int64(len(mem)), false)
	}
}

// learnBuffer tells C that a buffer was read, or written. If whole is not set, a part of it was
// not.
func learnBuffer(b mpi.Buffer, written, whole bool) {
	if (*proc.Buffer)(&b).Memory() == nil {
		return
	}
	mem, _, ok := (*proc.Buffer)(&b).Plain()
	if !ok || len(mem) > fastpath.MaxBoardLend {
		return
	}
	p, n := uintptr(unsafe.Pointer(&mem[0])), int64(len(mem))
	if whole || knownWritable(p, n) || writable(mem) {
		learnMemory(p, n, written)
	}
}

func knownWritable(p uintptr, n int64) bool {
	for page, last := p>>C.PAGE_SHIFT, (p+uintptr(n)-1)>>C.PAGE_SHIFT; page <= last; page++ {
		if *(*uintptr)(unsafe.Pointer(&C.impi_writable[page%C.PAGES])) != page {
			return false
		}
	}
	return true
}

// learn tells C what a call of Go's has checked: a communicator, which may be nil, and the memory
// of a message of n bytes that was read or written.
func learn(c *commObject, p uintptr, n int64, written bool) {
	if shared.Used == 0 {
		return // there are no peers to which C could send
	}
	if c != nil {
		(*proc.Comm)(c.Comm).FastPath(c.handle)
	}
	learnMemory(p, min(n, longest()), written)
}

// longest is the longest message, in bytes, that C may send or receive.
func longest() int64 {
	if shared.Carriers.Lend != nil {
		return link.MaxLent
	}
	return link.MaxFastBox
}

func learnMemory(p uintptr, n int64, written bool) {
	if p < firstAddress || n <= 0 || shared.Used == 0 {
		return
	}
	pages := &C.impi_readable
	if written {
		pages = &C.impi_writable
	}
	from, last := p>>C.PAGE_SHIFT, (p+uintptr(n)-1)>>C.PAGE_SHIFT
	for page := from; page <= last && page-from < C.PAGES; page++ {
		if to := (*uintptr)(unsafe.Pointer(&pages[page%C.PAGES])); *to != page {
			*to = page
		}
	}
}

// tryWriting faults if memory cannot be written at its first byte, unless it is known to be. It
// changes nothing.
func tryWriting(p uintptr) {
	page := p >> C.PAGE_SHIFT
	if p >= firstAddress && *(*uintptr)(unsafe.Pointer(&C.impi_writable[page%C.PAGES])) != page {
		atomic.OrUint32((*uint32)(pointer(p&^3)), 0)
	}
}

//export fastPathRing
func fastPathRing(slot int32) { proc.WakeFastPathMembers(int(slot)) }

//export fastPathReturned
func fastPathReturned(slot int32, members, step uint64, what uint32, lent uintptr, n uint64) int32 {
	return cbool(collective.AwaitFastPathReads(int(slot), members, step, uint8(what), unsafe.Slice((*byte)(pointer(lent)), n)))
}

//export fastPathReview
func fastPathReview() { proc.RenewFastPathAllowances() }

//export fastPathHear
func fastPathHear() { proc.ProgressFastPath() }

//export fastPathWake
func fastPathWake(peer int32) { proc.WakeFastPath(int(peer)) }

// fastBoxWidth returns the size of the elements of a predefined type that C knows, else 0.
func fastBoxWidth(t uintptr) int64 {
	if t < datatypes {
		return int64(C.impi_width[t])
	}
	return 0
}

// isFastPath reports whether a handle is of a request that C has made, now or before.
func isFastPath(h uintptr) bool { return uint32(h)>>handles.KindShift == uint32(handles.FastPath) }

// fastPathIndex is the index of a request by the lower half of its handle; fastpath.Requests or
// more if no request has such a handle.
func fastPathIndex(n uint32) int {
	if n%(1<<handles.IndexShift) != 0 {
		return fastpath.Requests
	}
	return int(n >> handles.IndexShift & (1<<(handles.KindShift-handles.IndexShift) - 1))
}

// fastPathFromInt is the inverse of MPI_Request_toint for requests of C.
func fastPathFromInt(n int32) uintptr {
	i := fastPathIndex(uint32(n))
	if i >= fastpath.Requests || shared.Table[i].Gen%2 == 0 {
		return 0
	}
	return uintptr(shared.Table[i].Gen)<<32 | uintptr(uint32(n))
}

// fastPathObjects are C's requests, for calls that Go handles.
var fastPathObjects [fastpath.Requests]requestObject

func requestOf(h uintptr) *requestObject {
	if !isFastPath(h) {
		return requests.Get(h)
	}
	i := fastPathIndex(uint32(h))
	if i >= fastpath.Requests || uintptr(shared.Table[i].Gen) != h>>32 || shared.Table[i].State == fastpath.Free {
		return nil
	}
	c := commOf(shared.Table[i].Comm)
	if c == nil { // it was freed meanwhile
		c = world.Load()
	}
	if c == nil {
		return nil
	}
	r := &fastPathObjects[i]
	*r = requestObject{q: mpi.Request((*proc.Comm)(c.Comm).FastPathRequest(i, uint32(h>>32))), owner: &c.object}
	return r
}

func init() {
	measure.CountInC((*measure.Memory)(unsafe.Pointer(&C.impi_measure)), func(h uint64) uint64 {
		if c := commOf(uintptr(h)); c != nil {
			return proc.ContextOf((*proc.Comm)(c.Comm))
		}
		return 0
	})
}
