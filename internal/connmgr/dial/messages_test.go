package dial

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestMessages: an object arrives as it was, and what is too long or no object is refused without
// memory for it.
func TestMessages(t *testing.T) {
	a, b := sockets(t)
	from, err1 := NewBlocking(t.Context(), a)
	to, err2 := NewBlocking(t.Context(), b)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	m, r := Messages{from, 64}, Messages{to, 64}
	if err := m.Write(map[string]int{"x": 5}); err != nil {
		t.Fatal(err)
	}
	var got struct{ X int }
	if err := r.Read(&got); err != nil || got.X != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := m.Write(strings.Repeat("x", 64)); !errors.Is(err, ErrMessage) {
		t.Errorf("an object of 66 bytes: %v", err)
	}
	for _, bad := range []string{"\x00\x00\x00\x02{]", string(binary.BigEndian.AppendUint32(nil, 65))} {
		if err := from.WriteAll([]byte(bad)); err != nil {
			t.Fatal(err)
		}
		if err := r.Read(&got); !errors.Is(err, ErrMessage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := from.WriteAll([]byte("\x00\x00\x00\x09{")); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Read(&got); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the end within an object: %v", err)
	}
}
