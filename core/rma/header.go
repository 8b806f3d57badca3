package rma

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/datatype"
)

// Kind is what the sender of a Header asks for, or says that it has done.
type Kind uint8

// The kinds. Operations come first.
const (
	Put Kind = iota + 1
	Get
	Accumulate
	GetAccumulate
	CompareAndSwap
	Lock     // answered by a Code once it is granted
	Unlock   // answered once all operations before it are done
	Flush    // answered once all operations before it are done
	Post     // the exposure epoch of the sender is open
	Complete // the sender's access epoch is over, and all operations before it are done
	kinds
)

var kindNames = [...]string{Put: "Put", Get: "Get", Accumulate: "Accumulate", GetAccumulate: "GetAccumulate",
	CompareAndSwap: "CompareAndSwap", Lock: "Lock", Unlock: "Unlock", Flush: "Flush", Post: "Post", Complete: "Complete"}

func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Operation reports whether k accesses memory.
func (k Kind) Operation() bool { return k >= Put && k <= CompareAndSwap }

// HasAnswer reports whether the target answers with data or a Code.
func (k Kind) HasAnswer() bool {
	switch k {
	case Get, GetAccumulate, CompareAndSwap, Lock, Unlock, Flush:
		return true
	default:
		return false
	}
}

// Atomic reports whether k is carried out element by element, each of them atomically (MPI-4.1,
// 12.7.1), and in the order of the operations of the same origin (MPI-4.1, 12.7.2).
func (k Kind) Atomic() bool { return k >= Accumulate && k <= CompareAndSwap }

// Drains reports whether k is answered only after everything before it is done.
func (k Kind) Drains() bool { return k == Unlock || k == Flush || k == Complete }

// Header is a request of an origin, or a notice between origin and target.
type Header struct {
	Kind         Kind
	Op           *datatype.Op // operation of Accumulate and GetAccumulate
	Lock         LockType     // type for Lock
	Passive      bool         // the operation belongs to an epoch opened by a lock
	SeparateType bool         // the target's datatype comes in a message before the data
	Seq          uint32       // number that determines DataTag and AnswerTag
	Disp         int64        // in the target's units; an address in dynamic windows
	Count        int64        // items at the target
	Len          int64        // bytes of data in the representation that is sent
	TypeLen      int64        // size of the target's datatype
	Type         []byte       // result of Type.AppendBinary, unless SeparateType
	Data         []byte       // all of the data, or nil: it comes in a message of its own
}

// HeaderSize is the maximum size in bytes of a header with a datatype and data in it.
const HeaderSize = 2048

// Further limits of a header: MaxTypeLen is the maximum size in bytes of a datatype that comes in a
// message of its own.
const (
	fixedLen   = 40
	MaxTypeLen = 12 << 20
	maxSeq     = 1<<30 - 1
	version    = 1
)

// The flags of a header.
const (
	flagPassive = 1 << iota
	flagApart
	flagInline
	flagsAll = flagPassive | flagApart | flagInline
)

// exclusiveArg is the argument for LockExclusive, 0 that for LockShared.
const exclusiveArg = 1

// ops are the operations of accumulates, by their numbers in headers.
var ops = [...]*datatype.Op{nil, datatype.Sum, datatype.Prod, datatype.Max, datatype.Min, datatype.LAnd, datatype.LOr,
	datatype.LXor, datatype.BAnd, datatype.BOr, datatype.BXor, datatype.MaxLoc, datatype.MinLoc, datatype.Replace, datatype.NoOp}

func opCode(op *datatype.Op) byte {
	for i, o := range ops {
		if o == op {
			return byte(i)
		}
	}
	return byte(len(ops))
}

// Fits reports whether a header with a datatype of typeLen bytes and data of dataLen bytes
// has at most HeaderSize bytes.
func Fits(typeLen, dataLen int64) bool {
	return dataLen >= 0 && dataLen <= HeaderSize && typeLen+dataLen <= HeaderSize-fixedLen
}

// Next returns the sequence number after seq. Numbers run from 1 to 2^30-1 and then start
// again at 1.
func Next(seq uint32) uint32 { return seq%maxSeq + 1 }

// HeaderTag is the tag of headers. Messages that follow a header to the target have even
// tags and answers have odd ones, since origin and target may be the same proc.
const HeaderTag = 0

// DataTag returns the tag of the messages that follow the header.
func (h *Header) DataTag() int32 { return int32(h.Seq) * 2 }

// AnswerTag returns the tag of the message by which the target answers; its kind must be Answered.
func (h *Header) AnswerTag() int32 { return int32(h.Seq)*2 + 1 }

// Append appends the header to b. If inline, room for the data is appended too, for the
// caller to fill in: it is the last h.Len bytes.
func (h *Header) Append(b []byte, inline bool) []byte {
	var flags byte
	if h.Passive {
		flags |= flagPassive
	}
	if h.SeparateType {
		flags |= flagApart
	}
	if inline {
		flags |= flagInline
	}
	arg := opCode(h.Op)
	if h.Lock == LockExclusive {
		arg = exclusiveArg
	}
	b = append(b, version, byte(h.Kind), arg, flags)
	b = binary.BigEndian.AppendUint32(b, h.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Disp))
	b = binary.BigEndian.AppendUint64(b, uint64(h.Count))
	b = binary.BigEndian.AppendUint64(b, uint64(h.Len))
	b = binary.BigEndian.AppendUint64(b, uint64(h.TypeLen))
	if !h.SeparateType {
		b = append(b, h.Type...)
	}
	if inline {
		n := len(b)
		b = b[:min(cap(b), n+int(h.Len))]
		for len(b) < n+int(h.Len) {
			b = append(b, 0)
		}
	}
	return b
}

// Parse parses a header; its Type and Data are slices of b. The values in the result are within the
// limits of its kind. The caller must still check them against the datatype and the memory.
func Parse(b []byte) (h Header, err error) {
	if len(b) < fixedLen || len(b) > HeaderSize || b[0] != version {
		return h, fmt.Errorf("%w: %d bytes, of which version %d has %d to %d", ErrHeader, len(b), version, fixedLen, HeaderSize)
	}
	flags := b[3]
	h = Header{
		Kind: Kind(b[1]), Passive: flags&flagPassive != 0, SeparateType: flags&flagApart != 0,
		Seq:     binary.BigEndian.Uint32(b[4:]),
		Disp:    int64(binary.BigEndian.Uint64(b[8:])),
		Count:   int64(binary.BigEndian.Uint64(b[16:])),
		Len:     int64(binary.BigEndian.Uint64(b[24:])),
		TypeLen: int64(binary.BigEndian.Uint64(b[32:])),
	}
	if h.Kind == 0 || h.Kind >= kinds || flags&^byte(flagsAll) != 0 || h.Seq == 0 || h.Seq > maxSeq {
		return h, fmt.Errorf("%w: kind %d, flags %#x, number %d", ErrHeader, b[1], flags, h.Seq)
	}
	if err := h.argument(b[2]); err != nil {
		return h, err
	}
	if h.Disp < 0 || h.Count < 0 || h.Len < 0 || h.TypeLen < 0 || h.TypeLen > MaxTypeLen {
		return h, fmt.Errorf("%w: %v of %d items at %d, %d bytes, a datatype of %d", ErrHeader, h.Kind, h.Count, h.Disp, h.Len, h.TypeLen)
	}
	return h, h.tail(b[fixedLen:], flags&flagInline != 0)
}

// argument sets the field that the kind's argument byte stands for.
func (h *Header) argument(arg byte) error {
	switch {
	case h.Kind == Lock && arg <= exclusiveArg:
		h.Lock = LockShared
		if arg == exclusiveArg {
			h.Lock = LockExclusive
		}
	case h.Kind == Accumulate || h.Kind == GetAccumulate:
		if arg == 0 || int(arg) >= len(ops) {
			return fmt.Errorf("%w: operation %d of %v", ErrHeader, arg, h.Kind)
		}
		h.Op = ops[arg]
	case arg != 0:
		return fmt.Errorf("%w: argument %d of %v", ErrHeader, arg, h.Kind)
	}
	return nil
}

// tail reads the datatype and the data, which must be all of rest.
func (h *Header) tail(rest []byte, inline bool) error {
	if !h.SeparateType {
		if h.TypeLen > int64(len(rest)) {
			return fmt.Errorf("%w: a datatype of %d bytes in %d", ErrHeader, h.TypeLen, len(rest))
		}
		h.Type, rest = rest[:h.TypeLen], rest[h.TypeLen:]
	}
	if inline {
		if h.Len != int64(len(rest)) {
			return fmt.Errorf("%w: %d bytes of data instead of %d", ErrHeader, len(rest), h.Len)
		}
		h.Data, rest = rest, nil
	}
	return h.consistent(len(rest), inline)
}

func (h *Header) consistent(rest int, inline bool) error {
	ok := rest == 0
	switch {
	case !h.Kind.Operation():
		ok = ok && h.Len == 0 && h.TypeLen == 0 && h.Count == 0 && h.Disp == 0 && !inline && !h.SeparateType
	case h.Kind == Get:
		ok = ok && !inline && h.TypeLen > 0
	case h.Kind == CompareAndSwap:
		ok = ok && inline && !h.SeparateType && h.Count == 1 && h.TypeLen > 0
	default:
		ok = ok && h.TypeLen > 0 && (inline || h.Len > 0 || h.Op == datatype.NoOp)
	}
	if !ok {
		return fmt.Errorf("%w: %v of %d items, %d bytes of data, a datatype of %d bytes, and %d bytes behind", ErrHeader, h.Kind, h.Count, h.Len, h.TypeLen, rest)
	}
	return nil
}
