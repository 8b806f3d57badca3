package calls

import (
	"bytes"
	"io"
)

// JSONList is a file with a list of JSON, an entry a line. It is valid after each write, even if
// the process is killed then. If a write fails the file ends with its last whole line.
type JSONList struct {
	F interface {
		io.WriteSeeker
		Truncate(size int64) error
	}
	size int64  // without the end of the list
	both []byte // the bytes to write and the end of the list
}

const listEnd = "]\n"

// Write adds whole lines. It returns the number of their bytes that are in the file.
func (l *JSONList) Write(b []byte) (int, error) {
	l.both = append(append(l.both[:0], b...), listEnd...)
	n, err := l.F.Write(l.both)
	if err == nil {
		l.size += int64(len(b))
		_, err = l.F.Seek(l.size, io.SeekStart) // the next lines are written over the end
		return len(b), err
	}
	before := l.size
	for kept := b[:min(n, len(b))]; ; kept = kept[:len(kept)-1] { // fewer lines, until there is room for the end
		kept = kept[:bytes.LastIndexByte(kept, '\n')+1]
		l.size = before + int64(len(kept))
		if l.end() || len(kept) == 0 {
			return len(kept), err
		}
	}
}

// end truncates the file to l.size, and writes the end of the list.
func (l *JSONList) end() bool {
	if l.F.Truncate(l.size) != nil {
		return false
	}
	if l.size == 0 {
		return true
	}
	_, err := l.F.Seek(l.size, io.SeekStart)
	if err == nil {
		_, err = io.WriteString(l.F, listEnd)
	}
	return err == nil
}
