package native

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Link is a link to another proc of the site: a stream of bytes in messages of the site's MPI.
// Short pieces of it travel in chunks; long ones that are lent leave from the memory of the lender,
// and arrive in that of the receiver if it is known when they come.
//
// It has no handle to sleep on, as the libraries have none: its owner calls Links.Poll. After a
// Recv that has returned nothing, the library may be receiving into the first slice of its batch.
// The next call has to begin with the same slice; otherwise nobody wants what comes, and it is
// lost.
type Link struct {
	set    *Links
	to     int
	err    error // why it cannot be used any more
	closed bool
	ended  bool // CloseSend was called
	fresh  bool // it is in Links.fresh

	flights []flight // messages that the library is sending, oldest first
	lent    []loan   // slices that put has not given back, oldest first
	room    int      // messages that may leave before the peer has taken some

	queue []piece // what has come, oldest first
	owed  uint32  // messages taken that the peer has not been told of
	eof   bool    // the peer has ended its stream, after what is in queue
	last  uint8   // how many short messages the peer had sent when it ended its stream

	shorts
}

// flight is a message that the library is sending.
type flight struct {
	number request
	buf    []byte // a chunk; nil: it is lent
	pin    *runtime.Pinner
}

// loan is some bytes that put was given. It is done when they belong to the caller again.
type loan struct {
	size int
	done bool
}

type piece struct {
	size      int
	after     uint8  // how many short messages come before it
	buf       []byte // a chunk, or the memory for a long message, once there is one
	at        int    // bytes of buf that were delivered
	held      int32  // number of a long message that is not received yet
	begun     bool   // the library is receiving it into buf
	shortData bool   // it is the data of a short message, and no part of the stream
	number    request
	own       bool // buf is mapped for this message alone
	dropped   bool // given up; buf is Go's
	lost      bool // it could not be received, and nothing behind it can be delivered
	pin       *runtime.Pinner
}

// Peer returns the rank of the other proc at the site.
func (l *Link) Peer() int { return l.to }

func (l *Link) markReady() {
	if !l.fresh && !l.closed {
		l.fresh = true
		l.set.fresh = append(l.set.fresh, l)
	}
}

func (l *Link) unmarkReady() {
	if !l.fresh {
		return
	}
	l.fresh = false
	for i, x := range l.set.fresh {
		if x == l {
			last := len(l.set.fresh) - 1
			l.set.fresh[i] = l.set.fresh[last]
			l.set.fresh = l.set.fresh[:last]
			return
		}
	}
}

func (l *Link) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: %w", link.ErrBroken, err)
	}
}

func (l *Link) usable() error {
	if l.closed {
		return link.ErrClosed
	}
	return l.err
}

// arrived takes a message that has come, which is in Links.next if it is short.
func (l *Link) arrived(a *arrival) error {
	if l.closed { // nothing receives it any more
		if a.held != none && a.bytes <= maxLong {
			return l.set.drop(a.held, int(a.bytes))
		}
		return nil
	}
	kind, after := a.tag&tagKinds, uint8(a.tag>>tagAfter)
	l.agreed = l.agreed || a.tag&tagShorts != 0
	if a.held != none {
		if kind != tagLong || a.bytes > maxLong || a.bytes <= 0 {
			return fmt.Errorf("%w: rank %d of the site has sent a message of kind %d with %d bytes", ErrFailed, l.to, kind, a.bytes)
		}
		l.queued(piece{size: int(a.bytes), after: after, held: a.held, number: none})
		return nil
	}
	b := l.set.next[:a.bytes]
	if kind == tagLong {
		l.set.next = nil
		l.queued(piece{size: len(b), after: after, buf: b, held: none, number: none})
		return nil
	}
	if len(b) < prefixSize {
		return fmt.Errorf("%w: rank %d of the site has sent a message of kind %d with %d bytes", ErrFailed, l.to, kind, a.bytes)
	}
	taken := binary.NativeEndian.Uint32(b)
	if l.room+int(taken) > window {
		return fmt.Errorf("%w: rank %d of the site has taken %d messages, and %d were under way", ErrFailed, l.to, taken, window-l.room)
	}
	l.room += int(taken)
	switch kind {
	case tagChunk:
		l.set.next = nil
		l.queued(piece{size: len(b), after: after, buf: b, at: prefixSize, held: none, number: none})
	case tagEnd:
		l.eof, l.last = true, after
	case tagAllowance:
	default:
		return fmt.Errorf("%w: rank %d of the site has sent a message of kind %d", ErrFailed, l.to, kind)
	}
	return nil
}

func (l *Link) queued(p piece) {
	l.queue = append(l.queue, p)
	l.come += uint64(p.size - p.at)
	if l.boxes != nil {
		l.boxes.Bytes.Store(l.come) // for C
	}
}

func (l *Link) tag(kind int32) int32 {
	kind |= int32(l.sent()) << tagAfter
	if l.fast != nil {
		kind |= tagShorts
	}
	return kind
}

// Send copies the bytes that it accepts.
func (l *Link) Send(batch [][]byte) (n int, err error) { return l.put(batch, false) }

// Lend sends long slices without copying them.
func (l *Link) Lend(batch [][]byte) (n int, err error) { return l.put(batch, true) }

func (l *Link) put(batch [][]byte, lend bool) (n int, err error) {
	if err := l.usable(); err != nil {
		return 0, err
	}
	if l.ended {
		return 0, link.ErrClosed
	}
	l.completeSends()
	skip := 0 // bytes that are lent already
	for i := range l.lent {
		skip += l.lent[i].size
	}
	var chunk []byte // that is being filled
	used := 0
	flush := func() {
		if chunk == nil {
			return
		}
		l.launch(tagChunk, chunk[:used], chunk)
		l.lent = append(l.lent, loan{size: used - prefixSize, done: true})
		chunk = nil
	}
	for _, b := range batch {
		k := min(skip, len(b))
		skip -= k
		for b = b[k:]; len(b) > 0 && l.err == nil; {
			if lend && len(b) >= longSize && (chunk == nil || l.room > 1) {
				flush()
				if l.room == 0 {
					break
				}
				k := min(len(b), maxLong)
				l.lendLong(b[:k])
				b = b[k:]
				continue
			}
			if chunk == nil {
				if l.room == 0 {
					break
				}
				if chunk, err = l.set.chunk(); err != nil {
					l.fail(err)
					break
				}
				used = prefixSize
			}
			k := copy(chunk[used:], b)
			used += k
			b = b[k:]
			if used == len(chunk) {
				flush()
			}
		}
		if len(b) > 0 {
			break
		}
	}
	flush()
	if l.err != nil {
		return 0, l.err
	}
	return l.returned(), nil
}

// returned returns how many bytes at the front of what was lent belong to the lender again.
func (l *Link) returned() (n int) {
	i := 0
	for ; i < len(l.lent) && l.lent[i].done; i++ {
		n += l.lent[i].size
	}
	l.lent = append(l.lent[:0], l.lent[i:]...)
	return n
}

// launch sends a message with a prefix, whose memory is a chunk's.
func (l *Link) launch(kind int32, b, chunk []byte) {
	binary.NativeEndian.PutUint32(b, l.owed)
	l.owed = 0
	if kind == tagChunk {
		l.room--
		l.out += uint64(len(b) - prefixSize)
	}
	number, err := l.set.lib.send(l.to, l.tag(kind), unsafe.Pointer(&b[0]), len(b))
	switch {
	case err != nil:
		l.fail(err)
		l.set.free = append(l.set.free, chunk)
	case number == none:
		l.set.free = append(l.set.free, chunk)
	default:
		l.flights = append(l.flights, flight{number: number, buf: chunk})
	}
}

// lendLong sends a long message without copying it.
func (l *Link) lendLong(b []byte) {
	pin := l.set.pinner()
	pin.Pin(&b[0])
	l.room--
	l.out += uint64(len(b))
	number, err := l.set.lib.send(l.to, l.tag(tagLong), unsafe.Pointer(&b[0]), len(b))
	if err != nil || number == none {
		l.set.unpin(pin)
		if err != nil {
			l.fail(err)
		}
		l.lent = append(l.lent, loan{size: len(b), done: true})
		return
	}
	l.flights = append(l.flights, flight{number: number, pin: pin})
	l.lent = append(l.lent, loan{size: len(b)})
}

func (l *Link) completeSends() {
	kept := l.flights[:0]
	nth := 0 // number of slices lent that are not done
	for _, f := range l.flights {
		done, err := l.set.lib.test(f.number)
		if err != nil {
			l.fail(err)
		}
		if f.buf != nil {
			if done {
				l.set.free = append(l.set.free, f.buf)
			} else {
				kept = append(kept, f)
			}
			continue
		}
		if !done {
			nth++
			kept = append(kept, f)
			continue
		}
		l.set.unpin(f.pin)
		l.giveBack(nth)
	}
	clear(l.flights[len(kept):])
	l.flights = kept
}

// giveBack marks the nth of the lent pieces that are not done as done.
func (l *Link) giveBack(nth int) {
	for i := range l.lent {
		if l.lent[i].done {
			continue
		}
		if nth == 0 {
			l.lent[i].done = true
			return
		}
		nth--
	}
}

// Handle returns link.NoHandle: there is no descriptor to wait at (see Link).
func (l *Link) Handle() int { return link.NoHandle }

// Arm is always true: nothing wakes a sleeper.
func (l *Link) Arm(link.Interest) bool { return true }

// Limits returns zeros: the link has no preferences.
func (l *Link) Limits() link.Limits { return link.Limits{} }

// CloseSend sends the other proc the end of the stream.
func (l *Link) CloseSend() error {
	if err := l.usable(); err != nil {
		return err
	}
	if l.ended {
		return nil
	}
	l.ended = true
	b, err := l.set.chunk()
	if err != nil {
		return err
	}
	l.launch(tagEnd, b[:prefixSize], b)
	return l.err
}

// Close drops what has come, and ends the stream, which the other proc may be waiting for.
// Links.Idle releases what the library is still sending.
func (l *Link) Close() error {
	if !l.closed {
		_ = l.CloseSend() // fails only if the link is broken
	}
	l.unmarkReady()
	l.closed = true
	if len(l.queue) > 0 && l.queue[0].shortData && !l.queue[0].begun && l.queue[0].buf == nil {
		_ = l.set.shorts.drop(l.boxes, l.queue[0].size) // fails only with the library, which is reported elsewhere
	}
	l.shut()
	for i := range l.queue {
		switch p := &l.queue[i]; {
		case p.held != none:
			_ = l.set.drop(p.held, p.size) // fails only with the library, which is reported elsewhere
		case p.begun:
			l.set.orphans = append(l.set.orphans, *p)
		case p.buf != nil:
			l.release(p)
		}
	}
	l.queue = nil
	return nil
}
