package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// disk is a writer that has room for a limited number of bytes.
type disk struct {
	strings.Builder
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	d.Builder.Write(p[:n])
	if n < len(p) {
		return n, fmt.Errorf("write log: %w", syscall.ENOSPC)
	}
	return n, nil
}

func TestFullDisk(t *testing.T) {
	d := &disk{room: 14}
	o := NewOutput(d, func(err error) { t.Error("it is taken for a writer that failed for good:", err) })
	o.MarkGaps(func(l Loss) string { return "missing: " + l.String() + "\n" })
	s := o.Stream(prefix("[1] "))
	for _, line := range []string{"one\n", "two\n", "three\n", "four\n"} {
		if n, err := s.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	d.room = 5 // for a part of the message about it
	o.Write([]byte("five\n"))
	d.room = 1000
	s.Write([]byte("six\n"))
	s.Write([]byte("seven\n"))
	want := "[1] one\n[1] tw\nmiss\nmissing: 4 lines (26 bytes): write log: no space left on device\n[1] six\n[1] seven\n"
	if d.String() != want {
		t.Errorf("got %q\nwant %q", d.String(), want)
	}
	if l := o.Lost(); l.Lines != 4 || l.Bytes != 26 || !errors.Is(l.Cause, syscall.ENOSPC) || o.Err() != nil {
		t.Errorf("%v, %v", l, o.Err())
	}
}

// TestDevFull does the same with /dev/full, the kernel's full disk.
func TestDevFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := NewOutput(f, func(err error) { t.Error(err) })
	o.Write([]byte("one\ntwo\n"))
	o.Write([]byte("three\n"))
	if l := o.Lost(); l.Lines != 3 || l.Bytes != 14 {
		t.Errorf("%v", l)
	}
}
