//go:build !386 && !arm

// Package handles gives numbers to objects that C programs hold: an object is
// found by its number without a lock or a map, and a number that is made up,
// was freed or is of another sort of object is found out. A pointer has to have 64
// bits.
package handles

import (
	"sync"
	"sync/atomic"
)

// Handle is what C programs hold instead of an object, as wide as a pointer. Handles below FirstOwn
// are constants of the ABI, and 0 is no handle.
type Handle = uintptr

// FirstOwn is the first number after those that the ABI reserves for constants.
const FirstOwn Handle = 4096

// Kind is a sort of object; each has a table of its own.
type Kind uint32

// The kinds. No kind is 0, so that no handle is below FirstOwn.
const (
	Comm Kind = iota + 1
	Group
	Datatype
	Op
	Request
	Info
	Errhandler
	Win
	File
	Session
	Message
	ToolControl // a handle of a control variable
	ToolMeasure // a handle of a performance variable
	ToolSession
	FastPath // requests that C makes without a table of ours
)

// A handle is generation<<32 | kind<<KindShift | index<<IndexShift. Its lower half is a positive
// int, and tells objects that live at the same time apart.
const (
	KindShift  = 27
	IndexShift = 3
	indexBits  = KindShift - IndexShift
	chunkBits  = 8
	chunkSize  = 1 << chunkBits
	low        = 1<<32 - 1

	// Max is the maximum number of objects of a kind at a time.
	Max = 1 << indexBits
)

// Table holds the objects of a kind. An object stays at its address as long as it lives. The zero
// value has no objects and no kind; NewTable makes one.
type Table[T any] struct {
	kind   Kind
	chunks atomic.Pointer[[]*[chunkSize]slot[T]]
	free   atomic.Uint64 // index+1 of the first free slot, and a count of changes above

	mu   sync.Mutex // held while the table grows
	used int        // slots that were ever in use
}

type slot[T any] struct {
	gen  atomic.Uint32 // odd while the slot has an object
	next atomic.Uint32 // index+1 of the next free slot
	v    T
}

// NewTable makes the table of the objects of kind k. There must be one for each kind only, since a
// handle names the kind and not the table.
func NewTable[T any](k Kind) *Table[T] { return &Table[T]{kind: k} }

// Get returns the object of a handle, or nil if it has none. The object is valid as
// long as nobody frees the handle.
func (t *Table[T]) Get(h Handle) *T {
	s := t.slot(uint32(h))
	if s == nil || s.gen.Load() != uint32(h>>32) {
		return nil
	}
	return &s.v
}

// slot returns the place of the lower half of a handle, used or not.
func (t *Table[T]) slot(n uint32) *slot[T] {
	if n>>KindShift != uint32(t.kind) || n&(1<<IndexShift-1) != 0 {
		return nil
	}
	i := n & (1<<KindShift - 1) >> IndexShift
	chunks := t.chunks.Load()
	if chunks == nil || int(i>>chunkBits) >= len(*chunks) {
		return nil
	}
	return &(*chunks)[i>>chunkBits][i%chunkSize]
}

// New returns a handle and its object, which has the contents that the last object in that place
// had. Both are zero if there are Max already. The handle is valid after Set.
func (t *Table[T]) New() (Handle, *T) {
	for {
		head := t.free.Load()
		i := uint32(head)
		if i == 0 {
			return t.grow()
		}
		s := t.at(i - 1)
		next := uint64(s.next.Load())
		if t.free.CompareAndSwap(head, (head>>32+1)<<32|next) {
			return t.handle(i-1, s.gen.Load()+1), &s.v
		}
	}
}

// Set makes a handle of New valid. Data that was stored in the object before is visible to a caller
// of Get.
func (t *Table[T]) Set(h Handle) { t.slot(uint32(h)).gen.Store(uint32(h >> 32)) }

// Add calls New, stores v in the object and calls Set. It returns 0 if there are Max already.
func (t *Table[T]) Add(v T) Handle {
	h, p := t.New()
	if p == nil {
		return 0
	}
	*p = v
	t.Set(h)
	return h
}

// Free ends a handle. It returns false if the handle had no object: of several concurrent calls one
// returns true. The object must be cleared before, so far as it holds memory.
func (t *Table[T]) Free(h Handle) bool {
	s := t.slot(uint32(h))
	gen := uint32(h >> 32)
	if s == nil || gen%2 == 0 || !s.gen.CompareAndSwap(gen, gen+1) {
		return false
	}
	t.release(s, h)
	return true
}

// Cancel gives back a handle of New that was never Set.
func (t *Table[T]) Cancel(h Handle) {
	s := t.slot(uint32(h))
	s.gen.Store(uint32(h>>32) + 1)
	t.release(s, h)
}

func (t *Table[T]) release(s *slot[T], h Handle) {
	i := uint32(h) & (1<<KindShift - 1) >> IndexShift
	for {
		head := t.free.Load()
		s.next.Store(uint32(head))
		if t.free.CompareAndSwap(head, (head>>32+1)<<32|uint64(i+1)) {
			return
		}
	}
}

// Int returns the handle as C's int. It is unique among the live objects of a kind.
func Int(h Handle) int32 { return int32(h & low) }

// FromInt is the inverse of Int. It returns 0 if no object has the number.
func (t *Table[T]) FromInt(n int32) Handle {
	s := t.slot(uint32(n))
	if s == nil {
		return 0
	}
	gen := s.gen.Load()
	if gen%2 == 0 {
		return 0
	}
	return Handle(gen)<<32 | Handle(uint32(n))
}

// Each calls f for all objects that live.
func (t *Table[T]) Each(f func(Handle, *T)) {
	t.mu.Lock()
	used := t.used
	t.mu.Unlock()
	for i := range used {
		s := t.at(uint32(i))
		if gen := s.gen.Load(); gen%2 == 1 {
			f(t.handle(uint32(i), gen), &s.v)
		}
	}
}

func (t *Table[T]) at(i uint32) *slot[T] {
	return &(*t.chunks.Load())[i>>chunkBits][i%chunkSize]
}

func (t *Table[T]) handle(i, gen uint32) Handle {
	return Handle(gen)<<32 | Handle(t.kind)<<KindShift | Handle(i)<<IndexShift
}

// grow is New for a slot that was never in use. It returns 0 if the table is full.
func (t *Table[T]) grow() (Handle, *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.used
	if i == Max {
		return 0, nil
	}
	if i%chunkSize == 0 {
		var chunks []*[chunkSize]slot[T]
		if old := t.chunks.Load(); old != nil {
			chunks = append(chunks, *old...)
		}
		chunks = append(chunks, new([chunkSize]slot[T]))
		t.chunks.Store(&chunks)
	}
	t.used++
	s := t.at(uint32(i))
	return t.handle(uint32(i), 1), &s.v
}
