package conn_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// script is a connection whose Read returns what the script has next.
type script struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *script) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *script) Write(b []byte) (int, error) { return s.out.Write(b) }

func TestFramedReads(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		err      error
	}{
		"two frames and the end": {"\x00\x00\x00\x02ab\x00\x00\x00\x01c\x00\x00\x00\x00", "abc", nil},
		"bytes after the end":    {"\x00\x00\x00\x00\x00\x00\x00\x01c", "", nil},
		"no end":                 {"\x00\x00\x00\x01a", "a", io.ErrUnexpectedEOF},
		"half a frame":           {"\x00\x00\x00\x03ab", "ab", io.ErrUnexpectedEOF},
		"half a header":          {"\x00\x00", "", io.ErrUnexpectedEOF},
		"nothing":                {"", "", io.ErrUnexpectedEOF},
		"too long":               {"\x00\x01\x00\x01a", "", conn.ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(conn.Framed(&script{in: bytes.NewReader([]byte(c.in))}))
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestFramedWrites(t *testing.T) {
	s := &script{}
	f := conn.Framed(s)
	big := bytes.Repeat([]byte("x"), 70000)
	if n, err := f.Write(big); n != len(big) || err != nil {
		t.Fatal(n, err)
	}
	for range 2 {
		if err := f.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	want := append(append([]byte{0, 1, 0, 0}, big[:65536]...), 0, 0, 0x11, 0x70)
	want = append(append(want, big[65536:]...), 0, 0, 0, 0)
	if !bytes.Equal(s.out.Bytes(), want) {
		t.Errorf("%d bytes, want %d", s.out.Len(), len(want))
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after CloseWrite: %v", err)
	}
}

// FuzzFramed reads anything: the payload is no longer than the input, and only an end mark
// is reported as the end.
func FuzzFramed(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02ab\x00\x00\x00\x01c\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x01\x00\x01a"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := io.ReadAll(conn.Framed(&script{in: bytes.NewReader(in)}))
		if len(got) > len(in) {
			t.Fatalf("%d bytes of %d", len(got), len(in))
		}
		if err == nil && !bytes.Contains(in, make([]byte, 4)) {
			t.Fatal("an end that nobody has written")
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, conn.ErrFrame) {
			t.Fatal(err)
		}
	})
}
