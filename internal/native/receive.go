package native

import (
	"io"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Recv delivers what Links.Poll has found.
func (l *Link) Recv(batch [][]byte) (n int, err error) {
	if l.closed {
		return 0, link.ErrClosed
	}
	total := link.Len(batch)
	if len(l.queue) > 0 && l.queue[0].shortData {
		return l.receiveApart(batch, total)
	}
	defer func() { l.in += uint64(n) }()
	for len(l.queue) > 0 && n < total && !l.queue[0].lost {
		p := &l.queue[0]
		if !l.due(p.after) {
			return n, nil
		}
		if p.held != none || p.begun {
			if n > 0 {
				return n, nil // so that the next call provides the memory after this
			}
			if done, err := l.receiveLong(p, batch); err != nil {
				p.lost = true
				l.release(p)
				l.fail(err)
				break
			} else if !done {
				return 0, nil
			}
			if p.buf == nil { // it was received straight into batch
				n = p.size
				l.took()
				continue
			}
		}
		k := spread(batch, n, p.buf[p.at:p.size])
		n += k
		if p.at += k; p.at == p.size {
			l.release(p)
			l.took()
		}
	}
	if n > 0 || total == 0 || len(l.queue) == 0 && l.eof && !l.due(l.last) {
		return n, nil
	}
	l.unmarkReady()
	if len(l.queue) == 0 && l.eof && l.due(l.last) {
		return 0, io.EOF
	}
	return 0, l.err
}

// receiveApart is Recv for the data of a short message, which are sent apart. They are not part of
// the stream.
func (l *Link) receiveApart(batch [][]byte, total int) (n int, err error) {
	p := &l.queue[0]
	if p.lost || total == 0 {
		return 0, l.err
	}
	if p.begun || p.buf == nil {
		if done, err := l.receiveLong(p, batch); err != nil {
			p.lost = true
			l.release(p)
			l.fail(err)
			return 0, l.err
		} else if !done {
			return 0, nil
		}
	}
	if p.buf == nil { // it was received straight into batch
		n = p.size
		l.pop()
		return n, nil
	}
	n = spread(batch, 0, p.buf[p.at:p.size])
	if p.at += n; p.at == p.size {
		l.release(p)
		l.pop()
	}
	return n, nil
}

// due reports whether as many short messages were taken as the peer had sent when it sent a message
// of the stream with the tag after. If not, the link remains receivable: it may be C that takes
// them.
func (l *Link) due(after uint8) bool { return int8(after-l.taken()) <= 0 }

// receiveLong begins to receive the long message p, or looks whether it has come. When it has,
// p.buf is nil if it was received straight into the first slice of batch.
func (l *Link) receiveLong(p *piece, batch [][]byte) (done bool, err error) {
	if !p.begun {
		dst := batch[0]
		if len(dst) >= p.size {
			p.pin = l.set.pinner()
			p.pin.Pin(&dst[0])
		} else if dst, err = mapped(p.size); err != nil {
			return false, err
		} else {
			p.own = true
		}
		p.buf = dst[:p.size]
		if p.shortData {
			p.number, err = l.set.shorts.fetch(l.boxes, unsafe.Pointer(&dst[0]), p.size)
		} else {
			p.number, err = l.set.lib.recv(p.held, unsafe.Pointer(&dst[0]), p.size)
		}
		p.held = none
		if err != nil {
			return false, err
		}
		p.begun = true
	}
	if done, err = l.set.lib.test(p.number); !done && err == nil {
		return false, nil
	}
	if p.begun = false; err != nil {
		return false, err
	}
	if p.pin != nil {
		l.set.unpin(p.pin)
		p.pin = nil
		if len(batch[0]) >= p.size && &batch[0][0] == &p.buf[0] {
			p.buf = nil
		} else { // the receive was given up meanwhile: the engine drops the data
			p.buf, p.dropped = make([]byte, p.size), true
		}
	}
	return true, nil
}

// spread copies b to batch, behind its first n bytes.
func spread(batch [][]byte, n int, b []byte) (copied int) {
	for _, to := range batch {
		if n >= len(to) {
			n -= len(to)
			continue
		}
		k := copy(to[n:], b[copied:])
		n = 0
		if copied += k; copied == len(b) {
			break
		}
	}
	return copied
}

func (l *Link) release(p *piece) {
	switch {
	case p.own:
		_ = unix.Munmap(p.buf) // cannot fail for mapped memory
	case p.pin != nil:
		l.set.unpin(p.pin)
	case p.buf != nil && !p.dropped:
		l.set.free = append(l.set.free, p.buf[:chunkSize])
	}
	p.buf, p.pin, p.own = nil, nil, false
}

func (l *Link) pop() {
	copy(l.queue, l.queue[1:])
	l.queue[len(l.queue)-1] = piece{}
	l.queue = l.queue[:len(l.queue)-1]
}

// took records that the first of queue was delivered, and tells the peer now and then.
func (l *Link) took() {
	l.pop()
	if l.owed++; l.owed < window/2 || l.err != nil {
		return
	}
	if b, err := l.set.chunk(); err == nil {
		l.launch(tagAllowance, b[:prefixSize], b)
	}
}
