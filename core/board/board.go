package board

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// The layout: see the package comment.
const (
	version    = 2
	byteOrder  = 0x01020304
	page       = 4096
	headerSize = page
	line       = 128
	entrySize  = 64
	entries    = 8
	slotHead   = 2 * line
	memberSize = line + entries*entrySize
	roomSize   = 4 << 10
	halfSize   = 128 << 10
	areaSize   = entries*roomSize + 2*halfSize

	atAsked = 8 // offset in a member's line

	atVersion = 8
	atOrder   = 12
	atProcs   = 16
	atTaken   = 128
)

const (
	// MaxProcs is the maximum number of procs that share a board: each has a bit in a word.
	MaxProcs = 64
	// Slots is the maximum number of communicators on a board at a time.
	Slots = 16
	// MaxPost is the maximum number of bytes that a member can post in one step.
	MaxPost = halfSize
	// inline is how many bytes an entry has room for.
	inline = entrySize - 16
)

// The parts of the layout that C code uses, too: its header is generated from them
// (docs/shared-memory.md).
const (
	StepBits   = stepBits
	DoneBit    = doneBit
	AskedAt    = atAsked
	SlotHead   = slotHead
	MemberSize = memberSize
	EntriesAt  = line
	EntrySize  = entrySize
	Entries    = entries
	Inline     = inline
	RoomSize   = roomSize
	HalfSize   = halfSize
	AreaSize   = areaSize
)

var magic = [8]byte{'i', 'm', 'p', 'i', 'b', 'o', 'a', 'r'}

// ErrBoard is wrapped by the error for memory that is not a valid board, or in which
// another proc has written an impossible value.
var ErrBoard = errors.New("no valid board")

// Board is a board in shared memory.
type Board struct {
	mem   []byte
	procs int
	step  func() // set by Interleave; nil: none
}

func slotSize(procs int) int { return slotHead + procs*memberSize }

// ControlSize returns the number of bytes at the start of a board for that many procs that are
// control data of communicators. The areas follow.
func ControlSize(procs int) int { return (headerSize + Slots*slotSize(procs) + page - 1) &^ (page - 1) }

// Size returns the size in bytes of a board for that many procs. Most of it is never touched.
func Size(procs int) int { return ControlSize(procs) + Slots*procs*areaSize }

// Header returns the bytes at the start of a board for that many procs. All others are zero.
func Header(procs int) ([]byte, error) {
	if procs < 2 || procs > MaxProcs {
		return nil, fmt.Errorf("board: %w: it is for 2 to %d procs, not for %d", ErrBoard, MaxProcs, procs)
	}
	h := make([]byte, atTaken+8)
	copy(h, magic[:])
	binary.NativeEndian.PutUint32(h[atVersion:], version)
	binary.NativeEndian.PutUint32(h[atOrder:], byteOrder)
	binary.NativeEndian.PutUint32(h[atProcs:], uint32(procs))
	binary.NativeEndian.PutUint64(h[atTaken:], 1) // slot 0, the world's
	return h, nil
}

// Open checks memory that begins with a Header for procs procs. mem must be aligned to 8
// bytes, and is in use as long as the Board is.
func Open(mem []byte, procs int) (*Board, error) {
	want, err := Header(procs)
	if err != nil {
		return nil, err
	}
	if len(mem) != Size(procs) {
		return nil, fmt.Errorf("board: %w: %d bytes, for %d procs it has %d", ErrBoard, len(mem), procs, Size(procs))
	}
	if uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, fmt.Errorf("board: %w: its memory is not aligned", ErrBoard)
	}
	if string(mem[:atProcs+4]) != string(want[:atProcs+4]) {
		return nil, fmt.Errorf("board: %w: it begins with %q, want %q", ErrBoard, mem[:atProcs+4], want[:atProcs+4])
	}
	return &Board{mem: mem, procs: procs}, nil
}

// Interleave sets a function that is called where the actions of other procs at the same time
// matter: before data are written and read, and around the announcement that the caller sleeps. It
// is for simulators, which run other procs there, and is called before the first use.
func (b *Board) Interleave(step func()) { b.step = step }

func (b *Board) between() {
	if b.step != nil {
		b.step()
	}
}

func (b *Board) word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b.mem[at])) }

// ReserveSlot reserves a slot for a communicator; ok is false if none is left. One member calls it
// and sends the result to the others. It never returns slot 0, which belongs to the communicator of
// all procs of the board.
func (b *Board) ReserveSlot() (slot int, ok bool) {
	taken := b.word(atTaken)
	for {
		was := taken.Load()
		slot = bits.TrailingZeros64(^was)
		if slot >= Slots {
			return 0, false
		}
		if taken.CompareAndSwap(was, was|1<<slot) {
			return slot, true
		}
	}
}

func (b *Board) free(slot int) { b.word(atTaken).And(^(uint64(1) << slot)) }

// Member returns the part of member me in a slot of a communicator with that many members. The
// error wraps ErrBoard if there are more members than procs, or no such slot.
func (b *Board) Member(slot, members, me int) (*Member, error) {
	if slot < 0 || slot >= Slots || members < 1 || members > b.procs || me < 0 || me >= members {
		return nil, fmt.Errorf("board: %w: member %d of %d in slot %d; there are %d slots for %d", ErrBoard, me, members, slot, Slots, b.procs)
	}
	p := &Member{b: b, slot: slot, n: members, me: me, base: headerSize + slot*slotSize(b.procs)}
	p.State = &State{Members: uint32(members), Me: uint32(me), Slot: unsafe.Pointer(&b.mem[p.base]), Areas: unsafe.Pointer(&b.mem[p.area(0)])}
	return p, nil
}
