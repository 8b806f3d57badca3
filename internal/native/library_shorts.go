//go:build cgo && linux

package native

// #cgo noescape impi_shorts_put
// #cgo nocallback impi_shorts_put
// #cgo nocallback impi_shorts_took
// #cgo nocallback impi_shorts_fetch
// #include "library.h"
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/openimpi/impi/internal/native/shortbox"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// The generated header must be that of the Go type as it is now, or the length of an array is
// negative.
var (
	_ [unsafe.Sizeof(shortbox.Boxes{}) - C.sizeof_struct_impi_short_boxes]struct{}
	_ [C.sizeof_struct_impi_short_boxes - unsafe.Sizeof(shortbox.Boxes{})]struct{}
)

type carrierByC struct {
	l   *Library
	all *C.struct_impi_shorts
}

// beginShorts begins short messages, unless only one thread may call the library: C would be
// another one.
func (l *Library) beginShorts() carrier {
	if l.thread != nil {
		return nil
	}
	if l.shorts = C.impi_shorts_begin(l.fn, C.int(l.Size)); l.shorts == nil {
		return nil
	}
	return carrierByC{l, l.shorts}
}

func (l *Library) endShorts() error {
	if l.shorts == nil {
		return nil
	}
	return l.failed("the end of short messages", C.impi_shorts_end(l.shorts))
}

func boxesOfC(b *shortbox.Boxes) *C.struct_impi_short_boxes {
	return (*C.struct_impi_short_boxes)(unsafe.Pointer(b))
}

func (c carrierByC) attach(b *shortbox.Boxes) { C.impi_shorts_attach(c.all, boxesOfC(b)) }

func (c carrierByC) put(b *shortbox.Boxes, m *link.CarriedMessage, data []byte) error {
	done := C.impi_shorts_put(boxesOfC(b), (*C.struct_impi_short)(unsafe.Pointer(m)), C.uintptr_t(uintptr(address(data))))
	runtime.KeepAlive(data)
	if done != 0 {
		return nil
	}
	return c.l.failed("MPI_Isend", C.int(c.all.error))
}

func (c carrierByC) took(b *shortbox.Boxes, taken uint64) {
	if uint32(taken)-b.Said >= C.IMPI_SHORT_LAG {
		C.impi_shorts_took(boxesOfC(b), C.uint64_t(taken))
	}
}

func (c carrierByC) fetch(b *shortbox.Boxes, buf unsafe.Pointer, n int) (number request, err error) {
	r := C.impi_shorts_fetch(boxesOfC(b), C.uintptr_t(uintptr(buf)), C.uint64_t(n), (*C.int32_t)(&number))
	return number, c.l.failed("MPI_Irecv", r)
}

func (c carrierByC) drop(b *shortbox.Boxes, n int) error {
	return c.l.failed("MPI_Irecv", C.impi_shorts_drop(boxesOfC(b), C.uint64_t(n)))
}

func (c carrierByC) close(b *shortbox.Boxes, taken uint64) error {
	return c.l.failed("MPI_Irecv", C.impi_shorts_close(boxesOfC(b), C.uint64_t(taken)))
}

func (c carrierByC) room() bool {
	if c.all.spare < shortbox.Pieces {
		c.sending() // takes back what was sent
	}
	return c.all.error == 0 && c.all.spare >= shortbox.Pieces
}

func (c carrierByC) come() uint64 { return uint64(c.all.come) }

func (c carrierByC) sending() bool { return C.impi_shorts_sending(c.all) > 0 }

// trips makes round trips of 8 bytes with a link whose messages nobody else takes meanwhile.
func (c carrierByC) trips(l *Link, first bool, turns int) error {
	f := l.fast
	t := C.struct_impi_short_trips{taken: C.uint64_t(f.Taken), out_at: C.uint32_t(l.out), in_at: C.uint32_t(l.in), turns: C.int32_t(turns)}
	if first {
		t.first = 1
	}
	err := c.l.failed("a short message", C.impi_shorts_trips(boxesOfC(l.boxes), &t))
	for range turns { // records what C has done
		f.Posted(tripSize)
		f.Take(tripSize)
	}
	return err
}

// ShortMessageCalls returns what C code calls for short messages. The Links must use them.
func (l *Library) ShortMessageCalls() link.CarrierCalls {
	if l.shorts == nil {
		return link.CarrierCalls{}
	}
	return link.CarrierCalls{
		Pump: unsafe.Pointer(C.impi_shorts_pump), Put: unsafe.Pointer(C.impi_shorts_put), Took: unsafe.Pointer(C.impi_shorts_took),
		Lend: unsafe.Pointer(C.impi_shorts_lend), Fetch: unsafe.Pointer(C.impi_shorts_fetch),
		All:   unsafe.Pointer(l.shorts),
		Begin: unsafe.Pointer(C.impi_native_begin), Test: unsafe.Pointer(C.impi_native_test), Library: unsafe.Pointer(l.fn),
	}
}
