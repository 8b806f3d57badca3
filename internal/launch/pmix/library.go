//go:build cgo && linux

package pmix

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "library.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanLoad reports whether this build of the program can load libpmix.
const CanLoad = true

const name = "libpmix.so.2"

// libpmix is the library. Its functions may be called by several threads.
type libpmix struct{ me C.impi_pmix_proc }

func load() (library, error) {
	path := C.CString(name)
	defer C.free(unsafe.Pointer(path))
	if why := C.impi_pmix_load(path); why != nil {
		return nil, refuse(fmt.Sprintf("its library cannot be loaded (%s): install it (libpmix2 of Debian, pmix elsewhere), or put its folder in LD_LIBRARY_PATH", C.GoString(why)))
	}
	return &libpmix{}, nil
}

func failed(what string, status C.int) error {
	if status == C.IMPI_PMIX_SUCCESS {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", what, C.GoString(C.impi_pmix_describe(status)), int(status))
}

func (l *libpmix) init() (space string, rank uint32, err error) {
	before := sockets()
	if err := failed("PMIx_Init", C.impi_pmix_init(&l.me)); err != nil {
		return "", 0, err
	}
	for fd := range sockets() { // the library's sockets to its server, which programs that we start must not keep open
		if !before[fd] {
			unix.CloseOnExec(fd)
		}
	}
	return C.GoString(&l.me.space[0]), uint32(l.me.rank), nil
}

func sockets() map[int]bool {
	list, _ := os.ReadDir("/proc/self/fd")
	found := map[int]bool{}
	for _, f := range list {
		to, _ := os.Readlink("/proc/self/fd/" + f.Name())
		if fd, err := strconv.Atoi(f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			found[fd] = true
		}
	}
	return found
}

// get has a function read a value; it is not called for one that is not found.
func (l *libpmix) get(rank uint32, key string, read func(*C.impi_pmix_value) error) (found bool, err error) {
	k := C.CString(key)
	defer C.free(unsafe.Pointer(k))
	of := l.me
	of.rank = C.uint32_t(rank)
	var v *C.impi_pmix_value
	status := C.impi_pmix_get(&of, k, &v)
	defer C.impi_pmix_release(v)
	if status == C.IMPI_PMIX_NOT_FOUND {
		return false, nil
	}
	if err := failed("PMIx_Get of "+key, status); err != nil {
		return false, err
	}
	return true, read(v)
}

func (l *libpmix) number(rank uint32, key string) (n uint32, found bool, err error) {
	found, err = l.get(rank, key, func(v *C.impi_pmix_value) error {
		var number C.uint32_t
		if !C.impi_pmix_number(v, &number) {
			return errors.New("the value of " + key + " is no number")
		}
		n = uint32(number)
		return nil
	})
	return n, found, err
}

func (l *libpmix) text(rank uint32, key string) (text string, found bool, err error) {
	found, err = l.get(rank, key, func(v *C.impi_pmix_value) error {
		t := C.impi_pmix_text(v)
		if t == nil {
			return errors.New("the value of " + key + " is no text")
		}
		text = C.GoString(t)
		return nil
	})
	return text, found, err
}

func (l *libpmix) nodes() ([]string, error) {
	var list *C.char
	status := C.impi_pmix_nodes(&l.me.space[0], &list)
	defer C.free(unsafe.Pointer(list))
	if status == C.IMPI_PMIX_NOT_FOUND {
		return nil, nil
	}
	if err := failed("PMIx_Resolve_nodes", status); err != nil || list == nil || C.GoString(list) == "" {
		return nil, err
	}
	return strings.Split(C.GoString(list), ","), nil
}

func (l *libpmix) peers(node string) (ranks []uint32, err error) {
	n := C.CString(node)
	defer C.free(unsafe.Pointer(n))
	var procs *C.impi_pmix_proc
	var count C.size_t
	status := C.impi_pmix_peers(n, &l.me.space[0], &procs, &count)
	defer C.free(unsafe.Pointer(procs))
	if status == C.IMPI_PMIX_NOT_FOUND {
		return nil, nil
	}
	if err := failed("PMIx_Resolve_peers", status); err != nil || procs == nil {
		return nil, err
	}
	if count > maxProcs {
		return nil, fmt.Errorf("there are %d of them, and at most %d can be", uint64(count), maxProcs)
	}
	for _, p := range unsafe.Slice(procs, int(count)) {
		ranks = append(ranks, uint32(p.rank))
	}
	return ranks, nil
}

func (l *libpmix) put(key, value string) error {
	k, v := C.CString(key), C.CString(value)
	defer C.free(unsafe.Pointer(k))
	defer C.free(unsafe.Pointer(v))
	return failed("PMIx_Put of "+key, C.impi_pmix_put(k, v))
}

func (l *libpmix) fence() error { return failed("PMIx_Fence", C.impi_pmix_fence()) }

func (l *libpmix) abort(status int, message string) error {
	text := C.CString(message)
	defer C.free(unsafe.Pointer(text))
	return failed("PMIx_Abort", C.impi_pmix_abort(C.int(status), text))
}

func (l *libpmix) finalize() error { return failed("PMIx_Finalize", C.impi_pmix_finalize()) }
