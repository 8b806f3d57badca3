package engine

import (
	"bytes"
	"io"
	"strconv"
)

// maxSaid bounds a report of the guard, and maxMessages what is kept of the output before the
// program runs, both in bytes.
const (
	maxSaid     = 64
	maxMessages = 4 << 10
)

// filter handles one of the two outputs of a machine. Reports of the guard go to Started, and what
// the program prints goes on at once. What comes before the guard runs, from the commands that
// reach the machine and from login shells, is kept for error messages. By hand: there is only a
// shell at the other end, and its reports come in between what the program prints.
type filter struct {
	token []byte // begins a report of the guard
	tell  func(*filter, said)

	// out is nil until the guard has reported its machine.
	out     io.Writer
	machine int // -1: not yet reported

	held     []byte // may be the beginning of a report
	messages tail
}

func newFilter(mark string, tell func(*filter, said)) *filter {
	return &filter{token: []byte("\036" + mark + " "), tell: tell, machine: -1}
}

// Write never returns an error: a program must not stop because its output is not read.
func (f *filter) Write(p []byte) (int, error) {
	b := append(f.held, p...)
	f.held = nil
	for len(b) > 0 {
		i := beginning(b, f.token)
		f.pass(b[:i])
		b = b[i:]
		if len(b) < len(f.token) {
			break // it may become a token
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 && len(b) < len(f.token)+maxSaid {
			break
		}
		s, ok := said{}, false
		if end >= 0 {
			s, ok = parseSaid(string(b[len(f.token):end]))
		}
		if !ok { // not from the guard
			f.pass(b[:1])
			b = b[1:]
			continue
		}
		f.tell(f, s)
		b = b[end+1:]
	}
	f.held = append([]byte(nil), b...)
	return len(p), nil
}

// Close passes on what was held back.
func (f *filter) Close() {
	f.pass(f.held)
	f.held = nil
}

func (f *filter) pass(p []byte) {
	switch {
	case len(p) == 0:
	case f.out != nil:
		_, _ = f.out.Write(p)
	default:
		_, _ = f.messages.Write(p)
	}
}

// beginning returns where in b the token begins, or where b's end may be the beginning of one.
func beginning(b, token []byte) int {
	if i := bytes.Index(b, token); i >= 0 {
		return i
	}
	for i := max(0, len(b)-len(token)+1); i < len(b); i++ {
		if bytes.HasPrefix(token, b[i:]) {
			return i
		}
	}
	return len(b)
}

type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > maxMessages {
		t.b = append([]byte(nil), t.b[len(t.b)-maxMessages:]...)
	}
	return len(p), nil
}

// labels distributes lines that begin with a machine's index, a colon and a blank, as srun --label
// writes them, to the writers of the machines. Other lines go to others.
type labels struct {
	machines []io.Writer
	others   io.Writer

	head []byte    // beginning of a line, until its machine is known
	to   io.Writer // the writer of the current line, or nil
}

// Write never fails.
func (l *labels) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, complete := p, false
		if end := bytes.IndexByte(p, '\n'); end >= 0 {
			line, complete = p[:end+1], true
		}
		p = p[len(line):]
		if l.to == nil {
			l.head = append(l.head, line...)
			line = l.decide()
		}
		if l.to != nil && len(line) > 0 {
			_, _ = l.to.Write(line)
		}
		if complete {
			l.to = nil
		}
	}
	return n, nil
}

// decide finds the writer of the line that begins with head. It returns the part of head that is to
// be written, or nothing if the writer cannot be decided yet.
func (l *labels) decide() (line []byte) {
	digits := bytes.TrimLeft(l.head, " ")
	number := digits
	for len(number) > 0 && number[0] >= '0' && number[0] <= '9' {
		number = number[1:]
	}
	rest := number
	number = digits[:len(digits)-len(rest)]
	line = l.head
	switch i, err := strconv.Atoi(string(number)); {
	case len(number) <= 9 && (len(rest) == 0 || len(number) > 0 && len(rest) == 1 && rest[0] == ':'):
		return nil
	case err == nil && i < len(l.machines) && bytes.HasPrefix(rest, []byte(": ")):
		l.to, line = l.machines[i], rest[2:]
	default:
		l.to = l.others
	}
	l.head = nil
	return line
}

// Close passes on what was held back.
func (l *labels) Close() {
	if l.to == nil && len(l.head) > 0 {
		_, _ = l.others.Write(l.head)
		l.head = nil
	}
}
