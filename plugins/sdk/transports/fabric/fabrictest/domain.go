// Package fabrictest is a fabric of the reference kind: memory that processes of one machine share
// pretends to be remote. It shows what a vendor's Conn and Domain have to do, and what
// hardware checks: a key that is not valid any more, or an access outside of what was registered,
// fails. Tests and the conformance suite use it; no job has a reason to.
package fabrictest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

const (
	places    = 1024 // registrations at a time
	tableSize = places * 8
	keySize   = 12
)

// ErrKey means that a key is none of a registration that is valid.
var ErrKey = errors.New("the key is of no registration, or of one that has ended")

// Domain registers memory. The other side of each connection sees a table with what is
// valid, as hardware would.
type Domain struct {
	// Limit is how many bytes can be registered at a time; 0: any number.
	Limit int64

	mu      sync.Mutex
	file    int
	table   *[places]atomic.Uint64 // by place: the generation that is valid; 0: none
	at      [places]*registration
	lastGen uint64
	used    int64
}

// NewDomain makes a Domain.
func NewDomain() (*Domain, error) {
	fd, err := unix.MemfdCreate("impi-fabrictest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		if err = unix.Fallocate(fd, 0, 0, tableSize); err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("table of registrations: %w", err)
	}
	d := &Domain{file: fd}
	d.table, err = mapTable(fd)
	return d, err
}

func mapTable(fd int) (*[places]atomic.Uint64, error) {
	mem, err := mapFile(fd, tableSize)
	if err == nil && len(mem) != tableSize {
		err = errors.Join(fmt.Errorf("a table of %d bytes", len(mem)), unix.Munmap(mem)) //nolint:err113 // for a person
	}
	if err != nil {
		return nil, err
	}
	return (*[places]atomic.Uint64)(unsafe.Pointer(&mem[0])), nil
}

// mapFile maps a file of at least size bytes that cannot be made smaller; all of it if size is 0.
func mapFile(fd int, size int64) ([]byte, error) {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0) // first: until it is sealed its size may change
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("a file in memory: %w", err)
	}
	if err != nil || have&unix.F_SEAL_SHRINK == 0 || st.Size < max(size, 1) {
		return nil, fmt.Errorf("a file in memory of %d bytes with seals %#x (%w)", st.Size, have, err) //nolint:err113 // for a person
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a file in memory: %w", err)
	}
	return mem, nil
}

// registration is registered memory at a place of the table.
type registration struct {
	d     *Domain
	place int
	gen   uint64
	fd    int
	size  int64
}

// Register implements fabric.Domain.
func (d *Domain) Register(m fabric.Memory) (fabric.Registration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Limit > 0 && d.used+int64(len(m.Bytes)) > d.Limit {
		return nil, fmt.Errorf("%d bytes are registered, and %d can be", d.used, d.Limit) //nolint:err113 // for a person
	}
	for i := range d.at {
		if d.at[i] != nil {
			continue
		}
		d.lastGen++
		r := &registration{d: d, place: i, gen: d.lastGen, fd: m.FD, size: int64(len(m.Bytes))}
		d.at[i] = r
		d.used += r.size
		d.table[i].Store(r.gen)
		return r, nil
	}
	return nil, fmt.Errorf("%d registrations are the maximum", places) //nolint:err113 // for a person
}

// Key returns the place and the generation.
func (r *registration) Key() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(r.place))
	return binary.BigEndian.AppendUint64(b, r.gen)
}

// Close ends the registration.
func (r *registration) Close() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	r.d.table[r.place].Store(0)
	r.d.at[r.place] = nil
	r.d.used -= r.size
	return nil
}

// file calls f with the descriptor of the memory of a key.
func (d *Domain) withFile(k string, f func(fd int)) error {
	place, gen, err := parseKey(k)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.at[place]
	if r == nil || r.gen != gen {
		return ErrKey
	}
	f(r.fd)
	return nil
}

func parseKey(k string) (place int, gen uint64, err error) {
	if len(k) != keySize {
		return 0, 0, fmt.Errorf("%w: it has %d bytes", ErrKey, len(k))
	}
	n := binary.BigEndian.Uint32([]byte(k))
	if gen = binary.BigEndian.Uint64([]byte(k[4:])); n >= places || gen == 0 {
		return 0, 0, fmt.Errorf("%w: place %d, generation %d", ErrKey, n, gen)
	}
	return int(n), gen, nil
}
