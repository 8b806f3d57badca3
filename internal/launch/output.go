package launch

import (
	"bytes"
	"io"
	"sync"
)

// maxLine is the longest line that stays in one piece, in bytes.
const maxLine = 64 << 10

// Output merges the lines of many streams into one writer. Lines of different
// streams never mix, and each Write of the writer holds whole lines but where a
// stream was flushed in the middle of one.
type Output struct {
	mu     sync.Mutex
	w      io.Writer
	open   *Stream // whose line is shown without its end
	buf    []byte
	err    error // the failure of w after which nothing is written
	failed func(error)

	lost, gap Loss              // in all, and since the last line that was written
	torn      bool              // what was written last has no end of line
	note      func(Loss) string // nil: gaps are not marked
}

// NewOutput makes an Output that writes to w. failed, if it is not nil, is called
// when w fails for good, which a full disk does not; it must not write to the Output.
func NewOutput(w io.Writer, failed func(error)) *Output { return &Output{w: w, failed: failed} }

// Write writes p, whole lines that belong to no stream.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.interrupt(nil)
	o.buf = append(o.buf, p...)
	o.emit()
	return len(p), o.err
}

// Err is the failure of the writer after which it takes nothing. Streams go on taking bytes after it,
// so that no process is stopped by a reader that went away.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// interrupt ends the line that another stream left open.
func (o *Output) interrupt(by *Stream) {
	if o.open != nil && o.open != by {
		o.buf = append(o.buf, '\n')
		o.open = nil
	}
}

// Stream is one process's share of an Output. It is for one goroutine.
type Stream struct {
	o       *Output
	prefix  func() string
	partial []byte // a line whose end has not come
}

// Stream makes a stream. Each line starts with what prefix returns at that time;
// nil stands for no prefix.
func (o *Output) Stream(prefix func() string) *Stream { return &Stream{o: o, prefix: prefix} }

// Write takes bytes and passes all complete lines on. A line longer than 64 KiB
// is cut.
func (s *Stream) Write(p []byte) (int, error) {
	n := len(p)
	end := bytes.LastIndexByte(p, '\n') + 1
	if end > 0 || len(s.partial)+len(p) > maxLine {
		s.o.mu.Lock()
		defer s.o.mu.Unlock()
		s.lines(p[:end])
		p = p[end:]
		for len(s.partial)+len(p) > maxLine {
			k := maxLine - len(s.partial)
			s.line(append(s.partial, p[:k]...), true)
			p = p[k:]
		}
		s.o.emit()
	}
	s.partial = append(s.partial, p...)
	return n, nil
}

// lines queues p, which is empty or ends with a newline.
func (s *Stream) lines(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		line := p[:i]
		if len(s.partial) > 0 {
			line = append(s.partial, line...)
		}
		s.line(line, true)
		p = p[i+1:]
	}
}

// line queues one line, or the part of it that is there so far.
func (s *Stream) line(line []byte, complete bool) {
	s.partial = s.partial[:0]
	s.o.interrupt(s)
	if s.o.open == nil && s.prefix != nil {
		s.o.buf = append(s.o.buf, s.prefix()...)
	}
	s.o.buf = append(s.o.buf, line...)
	s.o.open = s
	if complete {
		s.o.buf = append(s.o.buf, '\n')
		s.o.open = nil
	}
}

// Pending reports whether a line waits for its end.
func (s *Stream) Pending() bool { return len(s.partial) > 0 }

// Flush shows a line whose end has not come, like a question to the user.
func (s *Stream) Flush() {
	if !s.Pending() {
		return
	}
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.line(s.partial, false)
	s.o.emit()
}

// Close flushes. With a prefix it also ends the last line; without one the
// bytes stay exactly those of the process.
func (s *Stream) Close() {
	s.Flush()
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	if s.o.open == s && s.prefix != nil {
		s.o.interrupt(nil)
		s.o.emit()
	}
}
