//go:build cgo && linux

package native

// #cgo LDFLAGS: -ldl
// #cgo noescape impi_native_send
// #cgo nocallback impi_native_send
// #cgo noescape impi_native_poll
// #cgo nocallback impi_native_poll
// #cgo noescape impi_native_recv
// #cgo nocallback impi_native_recv
// #cgo nocallback impi_native_test
// #include <stdlib.h>
// #include "library.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// CanLoad reports whether this build of the program can load a site's MPI.
const CanLoad = true

// Library is the MPI library of the site. One goroutine at a time may call its methods.
type Library struct {
	fn   *C.struct_impi_native
	Text string // its own description, one line

	Rank, Size int // in its world, once Init was called
	// thread calls the library in place of the caller if only the thread that has called its Init
	// may do so. It is nil if any thread may.
	thread *thread
	home   *thread // that has called Init, and calls Finalize
	shorts *C.struct_impi_shorts
}

// Load loads a shim that Build has made, and with it the MPI library that it was built for.
func Load(shim string) (*Library, error) {
	if err := Alone(); err != nil {
		return nil, err
	}
	path := C.CString(shim)
	defer C.free(unsafe.Pointer(path))
	l := &Library{}
	if why := C.impi_native_load(path, &l.fn); why != nil {
		return nil, fmt.Errorf("%w: %s: %s", ErrNoLibrary, shim, C.GoString(why))
	}
	if l.fn.abi != C.IMPI_NATIVE_ABI || l.fn.size != C.sizeof_struct_impi_native {
		return nil, fmt.Errorf("%w: %s has version %d of the functions, this program wants %d: build it anew with impi-node native build of the same release", ErrNoLibrary, shim, uint32(l.fn.abi), C.IMPI_NATIVE_ABI)
	}
	var text [256]C.char
	var standard C.int
	if err := l.failed("MPI_Get_library_version", C.impi_native_version(l.fn, &text[0], C.int(len(text)), &standard)); err != nil {
		return nil, err
	}
	l.Text = C.GoString(&text[0])
	if err := l.fits(shim, int(standard)); err != nil {
		return nil, err
	}
	if strings.Contains(strings.ToLower(l.Text), "impi ") {
		return nil, fmt.Errorf("%w: %s was built with our own impicc: build it with the mpicc of the site's MPI", ErrNoLibrary, shim)
	}
	return l, nil
}

// fits compares what the shim was compiled for with the library that was loaded for it, of which
// standard is the version of MPI: another module may be loaded now, whose library has the same
// name.
func (l *Library) fits(shim string, standard int) error {
	const remedy = "load the module again by whose mpicc it was compiled, or build it by the mpicc of the one that is loaded"
	family := map[C.uint32_t]string{C.IMPI_NATIVE_OPEN_MPI: "Open MPI", C.IMPI_NATIVE_MPICH: "MPICH or its kin"}[l.fn.family]
	if family != "" && (l.fn.family == C.IMPI_NATIVE_OPEN_MPI) != isOpenMPI(l.Text) {
		return fmt.Errorf("%w: %s was compiled for %s, and the library that was loaded for it is %s: %s", ErrNoLibrary, shim, family, l.Text, remedy)
	}
	if standard < int(l.fn.standard) {
		return fmt.Errorf("%w: %s was compiled for an MPI of version %d of the standard, and %s has version %d: %s", ErrNoLibrary, shim, uint32(l.fn.standard), l.Text, standard, remedy)
	}
	return nil
}

func (l *Library) failed(what string, result C.int) error {
	if result == 0 {
		return nil
	}
	switch result {
	case C.IMPI_SHORT_WRONG:
		return fmt.Errorf("%w: a short message of %s is none that a proc of impi sends", ErrFailed, l.Text)
	case C.IMPI_SHORT_MEMORY:
		return fmt.Errorf("%w: there is no memory to drop a message of %s", ErrFailed, l.Text)
	}
	var text [512]C.char
	C.impi_native_describe(l.fn, result, &text[0], C.int(len(text)))
	err := fmt.Errorf("%w: %s of %s: %s", ErrFailed, what, l.Text, C.GoString(&text[0]))
	if kind := kinds[result&(1<<C.IMPI_NATIVE_KIND_BITS-1)]; kind != nil && result > 0 {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// kindOf is the inverse of kinds; 0: there is no error.
func kindOf(err error) C.int {
	if err == nil {
		return 0
	}
	for kind, is := range kinds {
		if errors.Is(err, is) {
			return kind
		}
	}
	return C.IMPI_NATIVE_OTHER
}

var kinds = map[C.int]error{
	C.IMPI_NATIVE_LONGER: ErrLonger, C.IMPI_NATIVE_SHORTER: ErrShorter, C.IMPI_NATIVE_COUNT: ErrCount, C.IMPI_NATIVE_NO_MEMORY: ErrNoMemory,
}

// The levels of threads. Init asks for the higher one.
const (
	funnelled  = C.IMPI_NATIVE_FUNNELED
	serialized = C.IMPI_NATIVE_SERIALIZED
)

// Init begins the library, which connects to its launcher and to the other procs of the site.
func (l *Library) Init() error { return l.initialize(serialized) }

func (l *Library) initialize(level C.int) (err error) {
	l.home = newThread()
	l.home.run(func() {
		var provided, rank, size C.int
		err = l.failed("MPI_Init_thread", C.impi_native_init(l.fn, level, &provided, &rank, &size))
		l.Rank, l.Size = int(rank), int(size)
		if provided < C.IMPI_NATIVE_SERIALIZED {
			l.thread = l.home
		}
	})
	return err
}

// Finalize ends the library, together with those of the other procs of the site.
func (l *Library) Finalize() (err error) {
	if err := l.endShorts(); err != nil {
		return err
	}
	l.home.run(func() { err = l.failed("MPI_Finalize", C.impi_native_finalize(l.fn)) })
	return err
}

func (l *Library) send(to int, tag int32, buf unsafe.Pointer, n int) (number request, err error) {
	var r C.int
	if l.thread != nil {
		l.thread.run(func() {
			r = C.impi_native_send(l.fn, C.int(to), C.int(tag), C.uintptr_t(uintptr(buf)), C.int64_t(n), (*C.int32_t)(&number))
		})
	} else {
		r = C.impi_native_send(l.fn, C.int(to), C.int(tag), C.uintptr_t(uintptr(buf)), C.int64_t(n), (*C.int32_t)(&number))
	}
	if r != 0 {
		return none, l.failed("MPI_Isend", r)
	}
	return number, nil
}

// The fields of an arrival are where a shim has them, or a number is below 0.
const (
	_ = -(unsafe.Sizeof(arrival{}) ^ C.sizeof_struct_impi_native_message)
	_ = -(unsafe.Offsetof(arrival{}.source) ^ unsafe.Offsetof(C.struct_impi_native_message{}.source))
	_ = -(unsafe.Offsetof(arrival{}.tag) ^ unsafe.Offsetof(C.struct_impi_native_message{}.tag))
	_ = -(unsafe.Offsetof(arrival{}.bytes) ^ unsafe.Offsetof(C.struct_impi_native_message{}.bytes))
	_ = -(unsafe.Offsetof(arrival{}.held) ^ unsafe.Offsetof(C.struct_impi_native_message{}.held))
)

func (l *Library) poll(buf unsafe.Pointer, room int, a *arrival) (found bool, err error) {
	var r C.int
	m := (*C.struct_impi_native_message)(unsafe.Pointer(a))
	if l.thread != nil {
		l.thread.run(func() { r = C.impi_native_poll(l.fn, l.shorts, buf, C.int64_t(room), m) })
	} else {
		r = C.impi_native_poll(l.fn, l.shorts, buf, C.int64_t(room), m)
	}
	if r == 0 {
		return true, nil
	}
	if r == C.IMPI_NATIVE_NONE {
		return false, nil
	}
	return false, l.failed("a receive", r)
}

func (l *Library) recv(held int32, buf unsafe.Pointer, n int) (number request, err error) {
	var r C.int
	if l.thread != nil {
		l.thread.run(func() {
			r = C.impi_native_recv(l.fn, C.int32_t(held), C.uintptr_t(uintptr(buf)), C.int64_t(n), (*C.int32_t)(&number))
		})
	} else {
		r = C.impi_native_recv(l.fn, C.int32_t(held), C.uintptr_t(uintptr(buf)), C.int64_t(n), (*C.int32_t)(&number))
	}
	if r != 0 {
		return none, l.failed("MPI_Imrecv", r)
	}
	return number, nil
}

// test reports whether a request is done. Its number is free then.
func (l *Library) test(number request) (done bool, err error) {
	if number == none {
		return true, nil
	}
	var r C.int
	if l.thread != nil {
		l.thread.run(func() { r = C.impi_native_test(l.fn, C.int32_t(number)) })
	} else {
		r = C.impi_native_test(l.fn, C.int32_t(number))
	}
	if r == 0 {
		return true, nil
	}
	if r == C.IMPI_NATIVE_NONE {
		return false, nil
	}
	return true, l.failed("MPI_Test", r)
}

func (l *Library) onlyHome() bool { return l.thread != nil }

func (l *Library) open(ranks []int32, tag int) (c Comm, err error) {
	l.anywhere(func() {
		err = l.failed("MPI_Comm_create_group", C.impi_native_open(l.fn, (*C.int)(&ranks[0]), C.int(len(ranks)), C.int(tag), (*C.int32_t)(&c)))
	})
	return c, err
}

func (l *Library) close(c Comm) (err error) {
	l.anywhere(func() { err = l.failed("MPI_Comm_free", C.impi_native_close(l.fn, C.int32_t(c))) })
	return err
}

// begin begins a phase, whose memory is pinned.
func (l *Library) begin(c Comm, p *Phase) (number request, err error) {
	a := C.struct_impi_native_phase_args{
		comm: C.int32_t(c), phase: C.int32_t(p.What), _type: C.int32_t(p.Type), op: C.int32_t(p.Op), root: C.int32_t(p.Root),
		n: C.int64_t(p.Count), in: C.uintptr_t(uintptr(address(p.In))), out: C.uintptr_t(uintptr(address(p.Out))),
	}
	l.anywhere(func() {
		if p.Failed != nil {
			C.impi_native_fail(l.fn, kindOf(p.Failed))
			defer C.impi_native_fail(l.fn, 0)
		}
		err = l.failed("a collective operation", C.impi_native_begin(l.fn, &a, (*C.int32_t)(&number)))
	})
	return number, err
}

func (l *Library) failure(result int32) error {
	return l.failed("a collective operation", C.int(result))
}

// anywhere runs f where the library may be called.
func (l *Library) anywhere(f func()) {
	if l.thread != nil {
		l.thread.run(f)
	} else {
		f()
	}
}
