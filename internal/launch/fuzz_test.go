package launch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

// FuzzOutput lets two procs write anything in any pieces. Whatever they write
// comes out in its order, in lines that do not mix, and no more than one line is
// kept back.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("hello\nworld"), []byte("one\n\ntwo\n"), uint16(3), uint16(5))
	f.Add([]byte("name? "), []byte("\n"), uint16(1), uint16(1))
	f.Add(bytes.Repeat([]byte{'x'}, 300), []byte{0xff, 0, '\n', '\r'}, uint16(1), uint16(2))
	f.Fuzz(func(t *testing.T, a, b []byte, pa, pb uint16) {
		defer watchdog.Start()()
		var out strings.Builder
		o := NewOutput(&out, nil)
		streams := []*Stream{o.Stream(func() string { return "[0] " }), o.Stream(func() string { return "[1] " })}
		texts, sizes := [][]byte{a, b}, []int{1 + int(pa)%500, 1 + int(pb)%500}
		for left := true; left; {
			left = false
			for i, s := range streams {
				p := texts[i][:min(sizes[i], len(texts[i]))]
				if n, err := s.Write(p); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
				texts[i] = texts[i][len(p):]
				left = left || len(texts[i]) > 0
				if len(s.partial) > maxLine {
					t.Fatalf("%d bytes are kept back", len(s.partial))
				}
			}
		}
		for _, s := range streams {
			s.Close()
		}
		var got [2][]byte
		for _, line := range strings.SplitAfter(out.String(), "\n") {
			switch {
			case line == "":
			case strings.HasPrefix(line, "[0] "), strings.HasPrefix(line, "[1] "):
				got[line[1]-'0'] = append(got[line[1]-'0'], line[4:]...)
			default:
				t.Fatalf("a line of nobody's: %q", line)
			}
		}
		for i, want := range [][]byte{a, b} {
			if len(want) > 0 && want[len(want)-1] != '\n' {
				want = append(bytes.Clone(want), '\n')
			}
			if len(a)+len(b) < maxLine && !bytes.Equal(got[i], want) {
				t.Fatalf("stream %d: %q, want %q", i, got[i], want)
			}
		}
	})
}
