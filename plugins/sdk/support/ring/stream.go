package ring

import (
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// writer is the writing side of one ring. Only block is shared with the other side.
type writer struct {
	b    *block
	data []byte
	mask uint64
	head uint64 // as in block
	tail uint64 // as last seen

	placed uint64 // bytes after head that are reserved
	ledger
}

// room returns how many bytes can be written now. It loads the reader's counter only if the
// last value gives less than want.
func (w *writer) room(want uint64) (uint64, error) {
	size := w.mask + 1
	if free := size - (w.head - w.tail); free >= want {
		return free, nil
	}
	tail := w.b.tail.Load()
	if w.head-tail > size || tail-w.tail > w.head-w.tail {
		return 0, fmt.Errorf("%w: the other side says that it has read %d bytes of %d, and %d before", ErrRegion, tail, w.head, w.tail)
	}
	w.tail = tail
	return size - (w.head - tail), nil
}

func (w *writer) write(batch [][]byte) (int, error) {
	w.publish()
	free, err := w.room(uint64(link.Len(batch)))
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for _, b := range batch {
		if uint64(len(b)) > free-n {
			b = b[:free-n]
		}
		if len(b) == 0 {
			continue
		}
		at := (w.head + n) & w.mask
		k := ntcopy.Copy(w.data[at:], b)
		if k < len(b) {
			ntcopy.Copy(w.data, b[k:])
		}
		n += uint64(len(b))
	}
	if n > 0 {
		w.head += n
		w.b.head.Swap(w.head)
	}
	return int(n), nil
}

type reader struct {
	b      *block
	data   []byte
	mask   uint64
	tail   uint64
	stored uint64 // the tail in block, which may be lower
	head   uint64 // as last seen

	fastBoxes *link.FastBoxes // nil: no fast-box messages are taken
	borrows   bool            // the writer may lend
	borrower
}

// waiting returns how many bytes of the ring can be read now: up to the next fast-box message or
// loan.
func (r *reader) waiting() (uint64, error) {
	if r.head == r.tail {
		head := r.b.head.Load()
		if head-r.tail > r.mask+1 {
			return 0, fmt.Errorf("%w: the other side says that it has written %d bytes, %d were read of %d that fit", ErrRegion, head, r.tail, r.mask+1)
		}
		r.head = head
	}
	if r.fastBoxes != nil { // must come after loading head
		if n, err := r.before(r.head - r.tail); n != r.head-r.tail || err != nil {
			return n, err
		}
	}
	if !r.borrows {
		return r.head - r.tail, nil
	}
	if r.next.size == 0 { // must come after loading head
		if err := r.lookForLoan(); err != nil {
			return 0, err
		}
	}
	if r.next.size > 0 {
		return min(r.head-r.tail, r.next.at-r.tail), nil
	}
	return r.head - r.tail, nil
}

// due reports whether a loan comes next. A fast-box message at the same position comes
// first: none is written while there are loans.
func (r *reader) due() bool { return r.next.size > 0 && r.next.at == r.tail && !r.fastBoxDue() }

// read copies into batch what has come. It reports whether the writer has to be told,
// because much room has become free since tail was stored.
func (r *reader) read(batch [][]byte) (n int, err error) {
	have, err := r.waiting()
	if err != nil || have == 0 {
		return 0, err
	}
	for _, b := range batch {
		if uint64(len(b)) > have-uint64(n) {
			b = b[:have-uint64(n)]
		}
		if len(b) == 0 {
			continue
		}
		at := (r.tail + uint64(n)) & r.mask
		k := copy(b, r.data[at:])
		if k < len(b) {
			copy(b[k:], r.data)
		}
		n += len(b)
	}
	r.tail += uint64(n)
	return n, nil
}

// publish stores tail if the stored value is behind by more than lag bytes, and reports
// whether it did.
func (r *reader) publish(lag uint64) bool {
	if r.tail-r.stored <= lag {
		return false
	}
	r.stored = r.tail
	r.b.tail.Swap(r.tail)
	return true
}
