package main

/*
#include "fabric.h"

#cgo noescape fabric_fetch
#cgo nocallback fabric_fetch
*/
import "C"

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	sdkfabric "github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

// A key is what a peer needs to read memory, little endian: libfabric's key, the address of the
// first byte, and how many bytes there are.
const keySize = 24

// Memory that was given back may still be read by a message that is on its way to a peer. So where
// it was mapped there is other memory for a while, up to these bounds.
const (
	mostRetired      = 256
	mostRetiredBytes = 1 << 36
)

// reads is how a provider reads the memory of peers.
type reads struct {
	problem string // why it does not; empty: it does
	local   bool   // what is read into is registered
	virtual bool   // peers name memory by its address, and not from 0
	keyBits uint   // of a key that the plugin chooses
	part    int    // bytes of one read
}

// inSoftware are the providers that store what they read with the processor, by this process.
var inSoftware = []string{"tcp", "shm", "net", "sockets"}

func readsOf(i info) (r reads) {
	mode := uint64(i.domain_attr.mr_mode)
	r = reads{local: mode&C.FI_MR_LOCAL != 0, virtual: mode&C.FI_MR_VIRT_ADDR != 0,
		keyBits: 8 * uint(min(i.domain_attr.mr_key_size, 8)), part: int(min(i.ep_attr.max_msg_size, partSize))}
	provider := C.GoString(i.fabric_attr.prov_name)
	first, _, _ := strings.Cut(provider, ";")
	switch software := slices.Contains(inSoftware, first); {
	case i.caps&C.FI_RMA == 0:
		r.problem = "the provider has no remote reads (FI_RMA)"
	case strings.Contains(provider, "rxd"):
		r.problem = "libfabric 1.17 has changed or lost bytes of this provider that needed several packets"
	case first == "shm" && (os.Getenv("FI_SHM_DISABLE_CMA") != "" || C.memory_others() == 0):
		r.problem = "the provider reads by process_vm_readv, which is refused to the plugin unless its transport block has confine = false"
	case !software && !r.local:
		r.problem = "the provider stores by hardware into memory that is not registered (no FI_MR_LOCAL), so a read could not be ended"
	}
	return r
}

// span is memory that was mapped by C.
type span struct {
	at   unsafe.Pointer
	size int
}

func mapped(fd, size int) (span, error) {
	p, err := C.memory_map(C.int(fd), C.size_t(size))
	if p == nil {
		return span{}, fmt.Errorf("map %d bytes of lent memory: %w", size, err)
	}
	return span{p, size}, nil
}

// blank puts other memory in its place. The kernel has done that when the call returns.
func (s span) blank() {
	if C.memory_blank(s.at, C.size_t(s.size)) != 0 {
		panic(fmt.Sprintf("%d bytes of memory cannot be taken from libfabric; the plugin ends so that it writes to none", s.size))
	}
}

func (s span) unmap() { C.memory_unmap(s.at, C.size_t(s.size)) }

// region is a file in memory that is registered for peers' reads.
type region struct {
	n     *node
	fd    int
	bytes []byte // where the SDK has it mapped, and says what is read into
	mem   span   // where peers read
	mr    *C.struct_fid_mr
	key   [keySize]byte
	views map[*messages]*view // of links that read into it; by the node's mutex
}

var errNoReads = errors.New("memory of peers cannot be read")

// Register makes memory readable by peers. It implements fabric.Domain.
func (n *node) Register(m sdkfabric.Memory) (sdkfabric.Registration, error) {
	if n.f.offer.problem != "" {
		return nil, fmt.Errorf("%w: %s", errNoReads, n.f.offer.problem)
	}
	mem, err := mapped(m.FD, len(m.Bytes))
	if err != nil {
		return nil, err
	}
	r := &region{n: n, fd: m.FD, bytes: m.Bytes, mem: mem, views: map[*messages]*view{}}
	key, mr, err := n.f.register(mem, true)
	if err != nil {
		mem.unmap()
		return nil, err
	}
	r.mr = mr
	binary.LittleEndian.PutUint64(r.key[:], key)
	if n.f.offer.virtual {
		binary.LittleEndian.PutUint64(r.key[8:], uint64(uintptr(mem.at)))
	}
	binary.LittleEndian.PutUint64(r.key[16:], uint64(mem.size))
	return r, nil
}

// register registers memory with a key that cannot be guessed, if the plugin chooses it.
func (f *fabric) register(s span, peers bool) (uint64, *C.struct_fid_mr, error) {
	var flag C.int
	if peers {
		flag = 1
	}
	for tries := 0; ; tries++ {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		key := C.uint64_t(binary.LittleEndian.Uint64(b[:]) & (1<<f.offer.keyBits - 1))
		var mr *C.struct_fid_mr
		ret := C.fabric_register(f.c, s.at, C.size_t(s.size), flag, &key, &mr)
		if ret == -C.FI_ENOKEY && tries < 10 { // it is in use
			continue
		}
		return uint64(key), mr, failed("fi_mr_reg", ret)
	}
}

// Key returns what a peer needs to read the memory.
func (r *region) Key() []byte { return r.key[:] }

// Close ends the registration: no read begins any more, and what is still on its way to a peer that
// has lost its link reads memory of no file.
func (r *region) Close() error {
	n := r.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for m, v := range r.views {
		delete(m.views, r)
		n.closeView(v)
	}
	ret := C.fabric_unregister(r.mr)
	r.mem.blank()
	n.retire(r.mem)
	return failed("fi_close", ret)
}

// retire unmaps memory later.
func (n *node) retire(s span) {
	n.retired, n.retiredBytes = append(n.retired, s), n.retiredBytes+s.size
	for len(n.retired) > mostRetired || n.retiredBytes > mostRetiredBytes {
		n.retired[0].unmap()
		n.retiredBytes -= n.retired[0].size
		n.retired = append(n.retired[:0], n.retired[1:]...)
	}
}

// view is where a link reads into a region: mapped for this link alone, so that it can be taken from
// the provider when the link ends, whatever the others read.
type view struct {
	mem   span
	mr    *C.struct_fid_mr // nil: the provider does not want it registered
	under int              // reads that the provider has
}

func (m *messages) view(r *region) (*view, error) {
	if v := m.views[r]; v != nil {
		return v, nil
	}
	mem, err := mapped(r.fd, len(r.bytes))
	if err != nil {
		return nil, err
	}
	v := &view{mem: mem}
	if f := m.l.n.f; f.offer.local {
		if _, v.mr, err = f.register(mem, false); err != nil {
			mem.unmap()
			return nil, err
		}
	}
	m.views[r], r.views[m] = v, v
	return v, nil
}

// closeView gives a view back. If something is read into it that goes on, to other memory, which
// goes when the provider has ended the read, or with the endpoint.
func (n *node) closeView(v *view) {
	if v.mr != nil {
		if err := failed("fi_close", C.fabric_unregister(v.mr)); err != nil && v.under > 0 {
			panic(fmt.Sprintf("%d bytes of memory that is read into cannot be taken from libfabric: %v; the plugin ends so that it writes to none", v.mem.size, err))
		}
		v.mr = nil
	}
	if v.under == 0 {
		v.mem.unmap()
		return
	}
	v.mem.blank()
	n.orphans[v] = true
}

// forgetMemory unmaps what was kept until the endpoint has ended.
func (n *node) forgetMemory() {
	for _, s := range n.retired {
		s.unmap()
	}
	for v := range n.orphans {
		v.mem.unmap()
	}
	n.retired, n.orphans = nil, nil
}

// remote is memory of a peer.
type remote struct{ key, at uint64 }

// parseKey finds what is to be read, which both sides' messages and memory bound.
func parseKey(key []byte, from, size uint64) (remote, error) {
	if len(key) != keySize {
		return remote{}, fmt.Errorf("%w: a key of %d bytes, and not %d", errRules, len(key), keySize)
	}
	base, most := binary.LittleEndian.Uint64(key[8:]), binary.LittleEndian.Uint64(key[16:])
	if from > most || size > most-from || base > base+most {
		return remote{}, fmt.Errorf("%w: it offers %d bytes at %d of memory that has %d", errRules, size, from, most)
	}
	return remote{binary.LittleEndian.Uint64(key), base + from}, nil
}

// fetch begins to read into memory of a view.
func (f *fabric) fetch(s *slot, v *view, at, size int, from address, what remote) error {
	return again("fi_read", C.fabric_fetch(f.c, s.c, unsafe.Add(v.mem.at, at), C.size_t(size), v.mr, from, C.uint64_t(what.at), C.uint64_t(what.key)))
}
