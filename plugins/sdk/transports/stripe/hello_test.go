package stripe

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// hellos are those of a stripe with this number.
func hellos(count int, id byte) []hello {
	list := make([]hello, count)
	for i := range list {
		list[i] = hello{i, count, [16]byte{id, 15: 7}}
	}
	return list
}

func TestHello(t *testing.T) {
	for i, h := range hellos(MaxConnections, 1) {
		var b bytes.Buffer
		if err := h.say(&b); err != nil {
			t.Fatal(err)
		}
		if got, err := hear(&b); err != nil || got != h || got.index != i || b.Len() != 0 {
			t.Errorf("said %v, heard %v, %v, and %d bytes more", h, got, err, b.Len())
		}
	}
}

func FuzzHear(f *testing.F) {
	var b bytes.Buffer
	_ = hellos(2, 1)[1].say(&b)
	good := b.Bytes()
	f.Add(good)
	for at, to := range map[int]byte{0: 'x', 4: 1, 5: 2, 6: 0, 7: 1} {
		bad := bytes.Clone(good)
		bad[at] = to
		if _, err := hear(bytes.NewReader(bad)); !errors.Is(err, ErrProtocol) {
			f.Errorf("byte %d is %d: %v", at, to, err)
		}
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := hear(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrProtocol) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Errorf("%x: %v", data, err)
			}
			return
		}
		var b bytes.Buffer
		if _ = h.say(&b); !bytes.Equal(b.Bytes(), data[:helloSize]) {
			t.Errorf("%x is heard as %v", data, h)
		}
	})
}
