package launch

import (
	"bytes"
	"io"
	"slices"
	"sync"
)

// maxLine is the longest line that is not divided, in bytes.
const maxLine = 64 << 10

// Output merges the lines of many streams into one writer. Lines of different streams are never
// mixed. Each Write to the writer has whole lines, unless a stream was flushed in the middle of
// one.
type Output struct {
	mu     sync.Mutex
	w      io.Writer
	open   *Stream // whose incomplete line was written last
	buf    []byte
	err    error // after this failure of w nothing is written any more
	failed func(error)

	lost, gap Loss              // in all, and since the last line that was written
	torn      bool              // the last byte that was written does not end a line
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

// Err returns the failure of the writer after which nothing is written. Streams go on accepting
// bytes after it, so that no process is blocked by a reader that went away.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// interrupt ends the incomplete line of another stream than by.
func (o *Output) interrupt(by *Stream) {
	if o.open != nil && o.open != by {
		o.buf = append(o.buf, '\n')
		o.open = nil
	}
}

// Stream is one process's input of an Output. Only one goroutine may use it.
type Stream struct {
	o       *Output
	prefix  func() string
	partial []byte // an incomplete line

	keep int      // number of lines that are kept
	kept []string // the last lines; guarded by the Output's mu
}

// KeepLines makes the stream remember its last n lines. It must be called before the first Write.
func (s *Stream) KeepLines(n int) { s.keep = n }

// KeptLines returns the last lines that were written, without their prefixes. Any goroutine may
// call it.
func (s *Stream) KeptLines() []string {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	return slices.Clone(s.kept)
}

// Stream makes a stream. Each line begins with what prefix returns at that time; nil means no
// prefix.
func (o *Output) Stream(prefix func() string) *Stream { return &Stream{o: o, prefix: prefix} }

// Write passes all complete lines on. Lines longer than 64 KiB are divided.
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

// line queues one line, or what has come of it so far.
func (s *Stream) line(line []byte, complete bool) {
	s.partial = s.partial[:0]
	s.o.interrupt(s)
	if s.keep > 0 {
		if len(s.kept) == s.keep {
			s.kept = slices.Delete(s.kept, 0, 1)
		}
		s.kept = append(s.kept, string(line))
	}
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

// Pending reports whether an incomplete line is held back.
func (s *Stream) Pending() bool { return len(s.partial) > 0 }

// Flush passes an incomplete line on, for example a question to the user.
func (s *Stream) Flush() {
	if !s.Pending() {
		return
	}
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.line(s.partial, false)
	s.o.emit()
}

// Close flushes. With a prefix it also ends the last line; without one the bytes stay exactly those
// of the process.
func (s *Stream) Close() {
	s.Flush()
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	if s.o.open == s && s.prefix != nil {
		s.o.interrupt(nil)
		s.o.emit()
	}
}
