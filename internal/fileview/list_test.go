package fileview

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const space = 300 // bytes of the file of random lists

// random makes a list, and which byte of its data each byte of a file is, -1 for none.
func random(r *rand.Rand) (l List, which []int) {
	which = slices.Repeat([]int{-1}, space)
	data := 0
	for at := int64(r.IntN(20)); ; {
		s := Series{Off: at, Len: int64(1 + r.IntN(6)), N: int64(1 + r.IntN(5))}
		s.Stride = s.Len + int64(r.IntN(4))
		if at = s.end() + int64(r.IntN(5)); at > space {
			return l, which
		}
		l.Add(s)
		for i := range s.N {
			for k := range s.Len {
				which[s.Off+i*s.Stride+k] = data
				data++
			}
		}
	}
}

// mapped is which bytes of a file a list has.
func mapped(l List) []bool {
	has := make([]bool, space)
	for _, x := range extents(l) {
		for k := range x.Len {
			has[x.Off+k] = true
		}
	}
	return has
}

func TestRandomLists(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		l, which := random(r)
		lo := int64(r.IntN(space))
		hi := lo + int64(r.IntN(space-int(lo)+1))
		part := l.Between(lo, hi)
		has, bytes, before := mapped(part), int64(0), int64(0)
		for i, k := range which {
			inside := k >= 0 && int64(i) >= lo && int64(i) < hi
			if has[i] != inside {
				t.Fatalf("between %d and %d of %v: %v", lo, hi, l.Series(), part.Series())
			}
			if inside {
				bytes++
			}
			if k >= 0 && int64(i) < lo {
				before++
			}
		}
		if part.Len() != bytes || l.Before(lo) != before {
			t.Fatalf("%v: %d bytes between %d and %d, want %d; %d before, want %d", l.Series(), part.Len(), lo, hi, bytes, l.Before(lo), before)
		}
		if again, err := Parse(part.Series(), lo, hi); err != nil || !slices.Equal(again.Series(), part.Series()) || again.Len() != part.Len() || again.Runs() != part.Runs() {
			t.Fatalf("%v, %v", again.Series(), err)
		}
	}
}

// TestFillAndPick moves the data of several lists to a file by windows, and back.
func TestFillAndPick(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		lists, data := make([]List, 1+r.IntN(5)), [][]byte{}
		want := make([]byte, space)
		may := make([]map[byte]bool, space) // where several have something
		sources := make([]*Source, len(lists))
		for i := range lists {
			var which []int
			lists[i], which = random(r)
			d := make([]byte, lists[i].Len())
			for k := range d {
				d[k] = byte(1 + r.IntN(255))
			}
			data = append(data, d)
			sources[i] = &Source{Cursor: lists[i].Cursor(), Data: d}
			for at, k := range which {
				if k >= 0 {
					if may[at] == nil {
						may[at] = map[byte]bool{}
					}
					may[at][d[k]] = true
				}
			}
		}
		got := make([]byte, space)
		for at := 0; at < space; {
			n := min(1+r.IntN(100), space-at)
			holes := Fill(got[at:at+n], int64(at), sources, nil)
			hole := make([]bool, space)
			for _, h := range holes {
				for k := range h.Len {
					hole[h.Off+k] = true
				}
			}
			covered := mapped(Union(lists, int64(at), int64(at+n)))
			for k := at; k < at+n; k++ {
				if hole[k] != (may[k] == nil) || covered[k] == hole[k] {
					t.Fatalf("byte %d: %v; holes %v, covered %v", k, may[k], holes, covered[k])
				}
				if may[k] != nil && !may[k][got[k]] {
					t.Fatalf("byte %d is %d, not one of %v", k, got[k], may[k])
				}
			}
			at += n
		}
		copy(want, got)
		for i := range lists {
			back := make([]byte, len(data[i]))
			c := lists[i].Cursor()
			n := int64(0)
			for at := 0; at < space; {
				w := min(1+r.IntN(100), space-at)
				n += GatherRuns(back[n:], want[at:at+w], int64(at), &c)
				at += w
			}
			again := bytes.Clone(want)
			c = lists[i].Cursor()
			if put := ScatterRuns(back, again, 0, &c); put != n || !bytes.Equal(again, want) {
				t.Fatalf("%d bytes put back of %d, or elsewhere", put, n)
			}
			clear(again)
			c = lists[i].Cursor()
			ScatterRuns(back, again, 0, &c)
			for at, has := range mapped(lists[i]) {
				if has && again[at] != want[at] || !has && again[at] != 0 {
					t.Fatalf("byte %d has become %d", at, again[at])
				}
			}
			k := 0
			for _, x := range extents(lists[i]) {
				if !bytes.Equal(back[k:k+int(x.Len)], want[x.Off:x.Off+x.Len]) {
					t.Fatalf("%v of list %v", x, lists[i].Series())
				}
				k += int(x.Len)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range [][]Series{
		{{0, 4, 4, 0}}, {{0, 0, 4, 1}}, {{-1, 4, 4, 1}}, {{96, 5, 5, 1}}, {{0, 4, 8, 14}}, {{0, 4, math.MaxInt64, 2}}, {{0, 4, 3, 2}}, {{0, 4, -4, 2}},
		{{8, 4, 4, 1}, {4, 4, 4, 1}}, {{0, 4, 4, 1}, {2, 4, 4, 1}}, {{0, math.MaxInt64, 1, 1}}, {{0, 1, 1, math.MaxInt64}},
	} {
		if l, err := Parse(s, 0, 100); err == nil {
			t.Errorf("%v: %v", s, l.Series())
		} else if !errors.Is(err, ErrOffset) && !errors.Is(err, ErrType) {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestDomains(t *testing.T) {
	for _, c := range []struct {
		lo, hi, align int64
		n             int
		want          []int64
	}{
		{100, 1000, 64, 3, []int64{100, 384, 704, 1000}},
		{0, 10, 4096, 3, []int64{0, 0, 0, 10}},
		{5, 5, 16, 2, []int64{5, 5, 5}},
		{1 << 40, 1<<40 + 8192, 4096, 2, []int64{1 << 40, 1<<40 + 4096, 1<<40 + 8192}},
	} {
		if got := Domains(c.lo, c.hi, c.n, c.align); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d by %d for %d: %v, want %v", c.lo, c.hi, c.align, c.n, got, c.want)
		}
	}
}
