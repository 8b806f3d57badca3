package resumable

import (
	"bytes"
	"testing"
)

// Discard consumes as much as it says of what Peek has returned; Recv returns the rest, and
// then Peek goes on with the next frame.
func TestPeek(t *testing.T) {
	for used := range 7 {
		pair := resumablePair(t)
		ends := [2]*Link{pair[0].(*Link), pair[1].(*Link)}
		var got []byte
		in := make([]byte, 64)
		for _, word := range []string{"first ", "second", "third "} {
			if _, err := ends[0].Send([][]byte{[]byte(word[:2]), []byte(word[2:])}); err != nil {
				t.Fatal(err)
			}
			data, _, _ := ends[1].Peek()
			k := min(used, len(data))
			got = append(got, data[:k]...)
			ends[1].Discard(k)
			for range 4 {
				n, err := ends[1].Recv([][]byte{in})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, in[:n]...)
			}
		}
		if !bytes.Equal(got, []byte("first secondthird ")) {
			t.Errorf("%q, with %d bytes of each frame discarded", got, used)
		}
		if _, n := ends[1].Counts(); n != 18 {
			t.Errorf("%d bytes were counted, not 18", n)
		}
	}
}

// If nothing has come Peek says so, and Recv need not be called.
func TestPeekOfNothing(t *testing.T) {
	pair := resumablePair(t)
	ends := [2]*Link{pair[0].(*Link), pair[1].(*Link)}
	in := make([]byte, 64)
	for range 4 { // until the greeting is forgotten
		if n, err := ends[1].Recv([][]byte{in}); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if data, _, more := ends[1].Peek(); len(data) != 0 || more {
		t.Errorf("%q, more %v", data, more)
	}
	if _, err := ends[0].Send([][]byte{[]byte("word")}); err != nil {
		t.Fatal(err)
	}
	if data, whole, more := ends[1].Peek(); string(data) != "word" || !whole || !more {
		t.Errorf("%q, whole %v, more %v", data, whole, more)
	}
}

// For a frame that is longer than one read, Peek returns the beginning. Recv reads the rest
// straight to its destination, however much of the beginning was taken and in whatever
// pieces it comes, and then Peek goes on.
func TestPeekOfLongFrame(t *testing.T) {
	for _, used := range []int{0, 1, 100, bulk - 40, first} {
		for _, piece := range []int{1 << 20, 7000, 1000, 100} {
			pair := resumablePair(t)
			ends := [2]*Link{pair[0].(*Link), pair[1].(*Link)}
			var got, want []byte
			in := make([]byte, piece)
			for i := range 4 {
				size := 20_000
				if i == 3 {
					size = 50
				}
				b := bytes.Repeat([]byte{byte(i), 7, 9}, size)
				want = append(want, b...)
				if n, err := ends[0].Send([][]byte{b[:9], b[9:]}); n != len(b) || err != nil {
					t.Fatal(n, err)
				}
				data, whole, _ := ends[1].Peek()
				if i == 3 && len(data) > 0 && !whole {
					t.Errorf("a short frame, of which %d bytes are shown, is not whole", len(data))
				}
				k := min(used, len(data))
				got = append(got, data[:k]...)
				ends[1].Discard(k)
				for len(got) < len(want) {
					n, err := ends[1].Recv([][]byte{in[:min(len(in), 1000)], in[min(len(in), 1000):]})
					if err != nil || n == 0 {
						t.Fatalf("%d bytes of %d, then %d, %v", len(got), len(want), n, err)
					}
					got = append(got, in[:n]...)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("other bytes, with %d of each frame discarded and pieces of %d", used, piece)
			}
		}
	}
}
