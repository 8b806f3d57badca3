package main

/*
#cgo pkg-config: libfabric
#cgo CFLAGS: -O2 -Wall
#include <stdlib.h>
#include "fabric.h"

#cgo noescape fabric_read
#cgo nocallback fabric_read
#cgo noescape fabric_send
#cgo nocallback fabric_send
#cgo noescape fabric_receive
#cgo nocallback fabric_receive
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

type fabricError struct {
	call string
	code int // positive
}

func (e *fabricError) Error() string {
	return fmt.Sprintf("%s: %s (-%d)", e.call, C.GoString(C.fi_strerror(C.int(e.code))), e.code)
}

func failed(call string, ret C.int) error {
	if ret == 0 {
		return nil
	}
	return &fabricError{call, int(-ret)}
}

var (
	errAgain  = errors.New("not now")
	eagain    = C.int(-C.FI_EAGAIN)
	errTrunc  = int(C.FI_ETRUNC)
	errNoData = int(C.FI_ENODATA)
	errAddr   = int(C.FI_EADDRINUSE)
	errBusy   = int(C.FI_EBUSY)
)

// cstring returns nil for the empty string.
func cstring(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

func free(list ...*C.char) {
	for _, s := range list {
		C.free(unsafe.Pointer(s))
	}
}

// query asks for endpoints and calls f with the first, which is the one that libfabric prefers.
func query(provider, domain, node, service string, f func(*C.struct_fi_info) error) error {
	p, d, n, s := cstring(provider), cstring(domain), cstring(node), cstring(service)
	defer free(p, d, n, s)
	var list *C.struct_fi_info
	if err := failed("fi_getinfo", C.fabric_info(p, d, n, s, &list)); err != nil {
		return err
	}
	defer C.fi_freeinfo(list)
	return f(list)
}

// providers returns the names of those that have endpoints of the kind that links need.
func providers() (names []string) {
	_ = query("", "", "", "", func(i *C.struct_fi_info) error { // an error: no names
		for ; i != nil; i = i.next {
			if name := C.GoString(i.fabric_attr.prov_name); !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
				names = append(names, name)
			}
		}
		return nil
	})
	return names
}

type offer struct {
	provider string
	domain   string
	format   int
	reads
}

const (
	formatIP4 = int(C.FI_SOCKADDR_IN)
	formatIP6 = int(C.FI_SOCKADDR_IN6)
	formatStr = int(C.FI_ADDR_STR)
)

func offerOf(i *C.struct_fi_info) offer {
	return offer{C.GoString(i.fabric_attr.prov_name), C.GoString(i.domain_attr.name), int(i.addr_format), readsOf(i)}
}

type fabric struct {
	c      *C.struct_fabric
	offer  offer
	name   []byte // its own address
	slots  []*slot
	ev     [C.batch]C.struct_event
	events [C.batch]event
	waiter
}

type slot struct {
	c    *C.struct_slot
	data []byte
	peer *peer // the peer that it is being sent to
	link *stream
	read *reading
	len  int
	kind byte
}

func openFabric(s settings, node, service string) (*fabric, error) {
	f := &fabric{}
	err := query(s.provider, s.domain, node, service, func(i *C.struct_fi_info) error {
		f.offer = offerOf(i)
		var what *C.char
		ret := C.fabric_open(&f.c, i, &what)
		return failed(C.GoString(what), ret)
	})
	if err != nil {
		return nil, err
	}
	name := make([]byte, 512)
	n := C.size_t(len(name))
	if err := failed("fi_getname", C.fi_getname(&f.c.ep.fid, unsafe.Pointer(&name[0]), &n)); err != nil || int(n) > maxBlob {
		f.close()
		return nil, errors.Join(err, errors.New("the address of the endpoint is too long"))
	}
	f.name = name[:n]
	if f.waiter, err = newWaiter(int(f.c.fd)); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fabric) close() {
	f.waiter.close()
	C.fabric_close(f.c)
}

func (f *fabric) grow(n, room int, receives bool) ([]*slot, error) {
	var first *C.struct_slot
	if err := failed("memory of messages", C.fabric_slots(f.c, C.uint32_t(n), C.uint32_t(room), &first)); err != nil {
		return nil, err
	}
	list := unsafe.Slice(first, n)
	from := len(f.slots)
	for i := range list {
		c := &list[i]
		c.index = C.uint32_t(len(f.slots))
		if receives {
			c.receives = 1
		}
		f.slots = append(f.slots, &slot{c: c, data: unsafe.Slice((*byte)(c.data), room)})
	}
	return f.slots[from:], nil
}

func (f *fabric) receive(s *slot) error { return again("fi_recv", C.fabric_receive(f.c, s.c)) }

func (f *fabric) send(s *slot, to address) error {
	return again("fi_send", C.fabric_send(f.c, s.c, C.size_t(s.len), to))
}

func again(call string, ret C.int) error {
	if ret == eagain {
		return errAgain
	}
	return failed(call, ret)
}

// mayWait reports whether the next completion will be seen at the descriptor.
func (f *fabric) mayWait() bool { return C.fabric_may_wait(f.c) != 0 }

func (f *fabric) insert(blob []byte) (to address, err error) {
	if f.shares() && ended(string(blob)) {
		return 0, errEnded
	}
	b := C.CBytes(append(blob[:len(blob):len(blob)], 0))
	defer C.free(b)
	if n := C.fabric_insert(f.c, b, &to); n != 1 {
		return 0, &fabricError{"fi_av_insert", max(1, -int(n))}
	}
	return to, nil
}

func (f *fabric) remove(to address) { C.fabric_remove(f.c, to) }

// forget removes the address of an endpoint of this process that is about to be closed. The caller
// holds the lock under which messages are sent.
func (f *fabric) forget(blob []byte) {
	b := C.CBytes(append(blob[:len(blob):len(blob)], 0))
	defer C.free(b)
	C.fabric_forget(f.c, b)
}

// shares reports whether the provider uses the memory of other endpoints in this process directly.
func (f *fabric) shares() bool { return f.c.shares != 0 }

func (f *fabric) mostPeers() int {
	if f.shares() {
		return 200 // it has room for 256, including those that it learns by itself
	}
	return maxPeers
}

type event struct {
	slot *slot
	len  int
	err  int // of libfabric, positive
}

// read returns what has completed; what it returns is valid until the next call. The caller holds
// the lock under which slots are made.
func (f *fabric) read() []event {
	n, found := int(C.fabric_read(f.c, &f.ev[0])), 0
	for _, e := range f.ev[:n] {
		if int64(e.index) < int64(len(f.slots)) {
			f.events[found] = event{f.slots[e.index], int(e.len), int(e.err)}
			found++
		}
	}
	return f.events[:found]
}

// validBlob reports whether b looks like the address of an endpoint of this provider.
func (f *fabric) validBlob(b []byte) bool {
	switch {
	case len(b) == 0 || len(b) > maxBlob:
		return false
	case f.offer.format == formatIP4:
		return len(b) == 16 && b[0] == 2 && b[1] == 0 && b[2]|b[3] != 0
	case f.offer.format == formatIP6:
		return len(b) == 28 && b[0] == 10 && b[1] == 0 && b[2]|b[3] != 0
	case f.offer.format == formatStr:
		text, zero := bytes.CutSuffix(b, []byte{0})
		return zero && printable(text) && bytes.Contains(text, []byte("://"))
	}
	return len(b) == len(f.name)
}

func printable(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// address is a peer's place in the table of addresses.
type address = C.fi_addr_t

type info = *C.struct_fi_info
