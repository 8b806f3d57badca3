package launch

import (
	"errors"
	"strings"
	"testing"
)

func prefix(s string) func() string { return func() string { return s } }

func TestLinesOfStreamsDoNotMix(t *testing.T) {
	var b strings.Builder
	o := NewOutput(&b, nil)
	one, two := o.Stream(prefix("[1] ")), o.Stream(prefix("[2] "))
	for _, w := range []struct {
		s    *Stream
		text string
	}{{one, "he"}, {two, "good"}, {one, "llo\nwor"}, {two, "bye\n\n"}, {one, "ld\nx"}} {
		if n, err := w.s.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatal(n, err)
		}
	}
	one.Close()
	two.Close()
	want := "[1] hello\n[2] goodbye\n[2] \n[1] world\n[1] x\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestOpenLineIsEndedByAnotherStream(t *testing.T) {
	var b strings.Builder
	o := NewOutput(&b, nil)
	one, two := o.Stream(prefix("[1] ")), o.Stream(prefix("[2] "))
	one.Write([]byte("name? "))
	one.Flush()
	one.Flush() // there is nothing more
	two.Write([]byte("tick\n"))
	one.Write([]byte("bob\n"))
	if want := "[1] name? \n[2] tick\n[1] bob\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestOpenLineGoesOn(t *testing.T) {
	var b strings.Builder
	o := NewOutput(&b, nil)
	s := o.Stream(prefix("[1] "))
	s.Write([]byte("name? "))
	s.Flush()
	s.Write([]byte("bob"))
	s.Flush()
	s.Close()
	o.Write([]byte("log\n"))
	if want := "[1] name? bob\nlog\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestWithoutPrefixBytesStay(t *testing.T) {
	var b strings.Builder
	o := NewOutput(&b, nil)
	s := o.Stream(nil)
	s.Write([]byte("a\nb"))
	s.Close()
	if b.String() != "a\nb" {
		t.Errorf("got %q", b.String())
	}
}

func TestPrefixMayChange(t *testing.T) {
	var b strings.Builder
	p := "[alpha.0] "
	s := NewOutput(&b, nil).Stream(func() string { return p })
	s.Write([]byte("early\n"))
	p = "[5] "
	s.Write([]byte("late\n"))
	if want := "[alpha.0] early\n[5] late\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
}

func TestLongLineIsCut(t *testing.T) {
	var b strings.Builder
	s := NewOutput(&b, nil).Stream(prefix("> "))
	for range 3 {
		s.Write([]byte(strings.Repeat("x", maxLine/2+1)))
		if len(s.partial) > maxLine {
			t.Fatalf("%d bytes are held", len(s.partial))
		}
	}
	s.Close()
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "> ") || len(line) > maxLine+3 {
			t.Errorf("a line of %d bytes starts %q", len(line), line[:2])
		}
	}
	if n := strings.Count(b.String(), "x"); n != 3*(maxLine/2+1) {
		t.Errorf("%d bytes came", n)
	}
}

type broken struct{ calls int }

var errBroken = errors.New("nobody reads")

func (b *broken) Write([]byte) (int, error) { b.calls++; return 0, errBroken }

func TestReaderThatWentAway(t *testing.T) {
	w := &broken{}
	told := 0
	o := NewOutput(w, func(err error) {
		if told++; !errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
	s := o.Stream(nil)
	for range 3 {
		if _, err := s.Write([]byte("x\n")); err != nil {
			t.Fatal("a process would be stopped:", err)
		}
	}
	if told != 1 || w.calls != 1 || !errors.Is(o.Err(), errBroken) {
		t.Errorf("%d calls, %v", w.calls, o.Err())
	}
}
