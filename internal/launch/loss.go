package launch

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
)

// Loss is output that could not be written.
type Loss struct {
	Lines, Bytes uint64
	Cause        error // the first error
}

func (l Loss) String() string {
	lines := "lines"
	if l.Lines == 1 {
		lines = "line"
	}
	return fmt.Sprintf("%d %s (%d bytes): %v", l.Lines, lines, l.Bytes, l.Cause)
}

func (l *Loss) add(b []byte, cause error) {
	l.Lines += uint64(bytes.Count(b, []byte{'\n'}))
	l.Bytes += uint64(len(b))
	if l.Cause == nil {
		l.Cause = cause
	}
}

// mayHaveRoom reports whether a write that failed may succeed later: the disk is full, or the file
// may not grow, until there is room again.
func mayHaveRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// Lost returns what was not written so far.
func (o *Output) Lost() Loss {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// MarkGaps makes the Output write a line from note at each place where something is missing, as
// soon as there is room for it.
func (o *Output) MarkGaps(note func(Loss) string) { o.note = note }

// emit writes what is queued. If the disk is full, that is lost and the next line is tried again;
// after any other failure nothing more is written.
func (o *Output) emit() {
	defer func() { o.buf = o.buf[:0] }()
	if len(o.buf) == 0 {
		return
	}
	if o.err != nil {
		o.lost.add(o.buf, o.err)
		return
	}
	head := o.head()
	b := o.buf
	if len(head) > 0 {
		b = append(head, b...)
	}
	n, err := o.w.Write(b)
	if err == nil {
		o.torn, o.gap = false, Loss{}
		return
	}
	if n > 0 { // unless all of it was written, the end of the line is missing
		o.torn = n < len(head) || o.buf[max(n-len(head), 1)-1] != '\n'
	}
	rest := o.buf
	if n > len(head) || n == len(head) && n > 0 {
		rest, o.gap = o.buf[n-len(head):], Loss{}
	}
	o.lost.add(rest, err)
	o.gap.add(rest, err)
	if !mayHaveRoom(err) {
		o.err = err
		if o.failed != nil {
			o.failed(err)
		}
	}
}

// head returns what has to be written before the next line, after one that was lost.
func (o *Output) head() (b []byte) {
	if o.torn {
		b = append(b, '\n')
	}
	if o.gap.Bytes > 0 && o.note != nil {
		b = append(b, o.note(o.gap)...)
	}
	return b
}
