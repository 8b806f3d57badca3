package board

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// LentBit distinguishes a post that lends its bytes from one that has them.
const LentBit = 1 << 7

// NeverLend is a value of State.Lend: no block is so long.
const NeverLend = math.MaxUint64

// MemoryKey is what others need to read the memory that a member lends, like the remote key of
// RDMA: Process is its number in the kernel, and the process is the right one if Cookie is in its
// memory at Addr.
type MemoryKey struct {
	Process uint64
	Addr    uint64
	Cookie  [2]uint64
}

const memoryKeySize = int(unsafe.Sizeof(MemoryKey{}))

// Cores are the CPUs that a proc may use: their number, and the first of them, which distinguishes
// procs that are bound to different CPUs.
type Cores struct{ Count, First uint32 }

// Lending contains what a proc needs to read the memory of other procs of its host, and they to
// read its own.
type Lending struct {
	Key   MemoryKey
	Cores Cores
	// Fetch copies memory of another proc. It fails if the memory, or the process, does not exist.
	Fetch func(from *MemoryKey, addr uint64, to []byte) error
}

// PostKey posts this member's key in t; a Wait of Vacant must be over.
func (p *Member) PostKey(t Step, what uint8, k MemoryKey) {
	*(*MemoryKey)(unsafe.Pointer(&p.Room(t, memoryKeySize)[0])) = k
	p.Post(t, what, memoryKeySize)
}

// ReadKey stores the key that member m has posted in t; a Wait of Posted must be over.
func (p *Member) ReadKey(m int, t Step, what uint8) error {
	b, err := p.Read(m, t, what, memoryKeySize)
	if err == nil {
		p.Keys[m] = *(*MemoryKey)(unsafe.Pointer(&b[0]))
	}
	return err
}

// KeySize returns the size of a MemoryKey in bytes, for a Wait of Vacant.
func KeySize() int { return memoryKeySize }

// LendSize is the number of bytes of a post that lends, for a Wait of Vacant.
const LendSize = 8

// PostLent posts that b, which is not empty, is lent in t; a Wait of Vacant for LendSize bytes must
// be over. The caller must not change b until a Wait of Finished is over for all members that read
// it.
func (p *Member) PostLent(t Step, what uint8, b []byte) {
	p.b.between()
	e := p.entry(p.me, t)
	*(*uint64)(unsafe.Pointer(&p.b.mem[e+16])) = uint64(uintptr(unsafe.Pointer(&b[0])))
	publish(p, e, t, what|LentBit, len(b))
}

// LentAddr returns the address of the n bytes that member m lends in t, in its memory; a Wait of
// Posted must be over. They are lent until End. The errors are those of Read.
func (p *Member) LentAddr(m int, t Step, what uint8, n int) (uint64, error) {
	e, err := p.posted(m, t, what|LentBit, n)
	if err != nil {
		return 0, err
	}
	p.took = true
	p.b.between()
	return *(*uint64)(unsafe.Pointer(&p.b.mem[e+16])), nil
}

// Ask records, before End, that this member could not read the memory that some members lend in t,
// and asks them to post it.
func (p *Member) Ask(t Step, lenders uint64) {
	at := p.part(p.me)
	p.b.word(at + atAsked + 8).Store(lenders)
	p.b.word(at + atAsked).Store(uint64(t))
	p.took = true
}

// Askers returns which of some members have called Ask for the memory that this member lends in t;
// a Wait of Finished must be over for them.
func (p *Member) Askers(t Step, members uint64) (askers uint64) {
	for left := members; left != 0; left &= left - 1 {
		m := bits.TrailingZeros64(left)
		at := p.part(m)
		if Step(p.b.word(at+atAsked).Load()) == t && p.b.word(at+atAsked+8).Load()&SetOf(p.me) != 0 {
			askers |= SetOf(m)
		}
	}
	return askers
}

// VacantFor is like Vacant for a post that only some members read, who have also read all posts
// since a step.
func (p *Member) VacantFor(t Step, n int, since Step, readers uint64) Wait {
	if was := p.lastUse(t, n); was >= since {
		return p.Finished(readers, was)
	}
	return p.Vacant(t, n)
}

// Lenders returns the members that have lent n bytes in t so far, as this member has.
func (p *Member) Lenders(t Step, what uint8, n int) (lenders uint64) {
	for left := p.Others(); left != 0; left &= left - 1 {
		m := bits.TrailingZeros64(left)
		if _, err := p.posted(m, t, what|LentBit, n); err == nil {
			lenders |= SetOf(m)
		}
	}
	return lenders
}

// publish fills entry e and makes it the entry of t for the other members.
func publish(p *Member, e int, t Step, what uint8, n int) {
	fill(p, e, t, what, n)
	p.b.word(e).Swap(uint64(t))
}

// fill is publish without the step that the other members look for.
func fill(p *Member, e int, t Step, what uint8, n int) {
	*(*uint64)(unsafe.Pointer(&p.b.mem[e+8])) = header(what, n)
	p.Written[t.index()%entries] = t
}

// posted returns the entry in which member m has posted n bytes in t. The error is ErrBoard if m is
// in another step, and a *Mismatch if it has posted anything else.
func (p *Member) posted(m int, t Step, what uint8, n int) (entry int, err error) {
	e := p.entry(m, t)
	if at := Step(p.b.word(e).Load()); at != t {
		return 0, fmt.Errorf("board: %w: member %d is in operation %d, not %d", ErrBoard, m, at>>stepBits, t>>stepBits)
	}
	if h := *(*uint64)(unsafe.Pointer(&p.b.mem[e+8])); h != header(what, n) {
		return 0, &Mismatch{Member: m, What: uint8(h>>56) &^ LentBit, Bytes: h << 8 >> 8, WantWhat: what &^ LentBit, WantBytes: n}
	}
	return e, nil
}
