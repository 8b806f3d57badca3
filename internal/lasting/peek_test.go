package lasting

import (
	"bytes"
	"testing"
)

// Of what Peek shows as much is gone as Discard says; the rest comes by Recv, and then
// Peek goes on with the next frame.
func TestPeek(t *testing.T) {
	for used := range 7 {
		pair := lastingPair(t)
		ends := [2]*Link{pair[0].(*Link), pair[1].(*Link)}
		var got []byte
		in := make([]byte, 64)
		for _, word := range []string{"first ", "second", "third "} {
			if _, err := ends[0].Send([][]byte{[]byte(word[:2]), []byte(word[2:])}); err != nil {
				t.Fatal(err)
			}
			data, _ := ends[1].Peek()
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

// Where nothing has come, Peek says so, and Recv need not be asked.
func TestPeekOfNothing(t *testing.T) {
	pair := lastingPair(t)
	ends := [2]*Link{pair[0].(*Link), pair[1].(*Link)}
	in := make([]byte, 64)
	for range 4 { // until the greeting is forgotten
		if n, err := ends[1].Recv([][]byte{in}); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if data, more := ends[1].Peek(); len(data) != 0 || more {
		t.Errorf("%q, more %v", data, more)
	}
	if _, err := ends[0].Send([][]byte{[]byte("word")}); err != nil {
		t.Fatal(err)
	}
	if data, more := ends[1].Peek(); string(data) != "word" || !more {
		t.Errorf("%q, more %v", data, more)
	}
}
