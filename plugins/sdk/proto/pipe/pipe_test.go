package pipe

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// tape returns given frames and records what is sent.
type tape struct {
	in  []*proto.Frame
	end error
	out []*proto.Frame
}

func (p *tape) Recv() (*proto.Frame, error) {
	if len(p.in) == 0 {
		return nil, p.end
	}
	f := p.in[0]
	p.in = p.in[1:]
	return f, nil
}

func (p *tape) Send(f *proto.Frame) error {
	p.out = append(p.out, &proto.Frame{Data: bytes.Clone(f.Data), End: f.End})
	return p.end
}

func TestRead(t *testing.T) {
	failed := errors.New("status")
	for name, c := range map[string]struct {
		in   []*proto.Frame
		end  error
		want string
		err  error
	}{
		"frames and end":      {[]*proto.Frame{{Data: []byte("ab")}, {}, {Data: []byte("c")}, {End: true}}, io.EOF, "abc", nil},
		"end with data":       {[]*proto.Frame{{Data: []byte("ab"), End: true}}, io.EOF, "ab", nil},
		"call ends too early": {[]*proto.Frame{{Data: []byte("ab")}}, io.EOF, "ab", io.ErrUnexpectedEOF},
		"call fails":          {[]*proto.Frame{{Data: []byte("ab")}}, failed, "ab", failed},
		"too large":           {[]*proto.Frame{{Data: make([]byte, MaxFrame+1)}}, nil, "", ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(&half{frames: &tape{in: c.in, end: c.end}})
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	p := &tape{}
	h := &half{frames: p}
	if n, err := h.Write(make([]byte, MaxFrame+1)); n != MaxFrame+1 || err != nil {
		t.Fatal(n, err)
	}
	if err := h.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if len(p.out) != 3 || len(p.out[0].Data) != MaxFrame || len(p.out[1].Data) != 1 || !p.out[2].End {
		t.Errorf("%d frames", len(p.out))
	}
	p.end = io.EOF // how gRPC says that the call is over
	if n, err := h.Write([]byte("x")); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d, %v", n, err)
	}
}
