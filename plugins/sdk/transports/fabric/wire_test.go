package fabric

import (
	"errors"
	"testing"
)

func FuzzHeader(f *testing.F) {
	h := header{kind: offer, key: 3, allowed: 1, number: 2, length: 3, offset: 4}
	f.Add(h.put(make([]byte, headerSize)), 3)
	f.Add([]byte{2, 1}, 0)
	f.Fuzz(func(t *testing.T, b []byte, more int) {
		if len(b) < headerSize || more < 0 || more > 1<<20 {
			if _, err := parseHeader(make([]byte, headerSize), len(b)%headerSize); !errors.Is(err, errWire) {
				t.Fatal(err)
			}
			return
		}
		h, err := parseHeader(b, headerSize+more)
		if err != nil {
			return
		}
		if h.key > maxKey || h.kind != eager && int(h.key) != more || h.kind == eager && h.length != uint64(more) {
			t.Fatalf("%+v with %d bytes behind it", h, more)
		}
		got := h.put(make([]byte, headerSize))
		if again, err := parseHeader(got, headerSize+more); err != nil || again != h {
			t.Fatalf("%+v, %+v, %v", h, again, err)
		}
	})
}
