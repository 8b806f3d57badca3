package rendezvous

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

var someHello = hello{
	flags: flagKey | flagResume, limit: 30 * time.Second,
	session: [16]byte{1, 2, 3}, key: mac{4, 5}, secret: mac{6, 7},
}

func TestHelloAndAnswer(t *testing.T) {
	b := someHello.append(nil)
	if len(b) != headSize+helloSize {
		t.Errorf("a hello of %d bytes", len(b))
	}
	if h, err := readHello(bytes.NewReader(append(b, "more"...))); err != nil || h != someHello {
		t.Errorf("%+v, %v", h, err)
	}
	a := answer{flags: flagKey, limit: time.Second, key: mac{8}, secret: mac{9}}
	b = a.append(nil)
	if len(b) != headSize+answerSize {
		t.Errorf("an answer of %d bytes", len(b))
	}
	if got, err := readAnswer(bytes.NewReader(b)); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := readAnswer(bytes.NewReader(b[:n])); !inOrder(err) {
			t.Errorf("%d bytes of an answer: %v", n, err)
		}
	}
}

// TestMalformedHello: every byte with a fixed value is checked.
func TestMalformedHello(t *testing.T) {
	good, reply := someHello.append(nil), (&answer{}).append(nil)
	for i := range headSize + 4 {
		b := bytes.Clone(good)
		b[i] ^= 0x80
		if _, err := readHello(bytes.NewReader(b)); !errors.Is(err, errPreface) {
			t.Errorf("byte %d of a hello: %v", i, err)
		}
		b = bytes.Clone(reply)
		b[i] ^= 0x80
		if _, err := readAnswer(bytes.NewReader(b)); !errors.Is(err, errPreface) {
			t.Errorf("byte %d of an answer: %v", i, err)
		}
	}
}

// TestRefusalIsBounded: the length that a FAIL announces is not trusted.
func TestRefusalIsBounded(t *testing.T) {
	b := wire.AppendCommand(nil, wire.CmdFail, 1<<30)
	b = append(b, bytes.Repeat([]byte("no\n"), maxRefusal)...)
	_, err := readAnswer(bytes.NewReader(b))
	var r *refusal
	if !errors.As(err, &r) || len(r.text) != maxRefusal || r.text[:4] != "no?n" {
		t.Errorf("%.60v", err)
	}
}

// TestProofsDiffer: a proof holds for one side, one connection, one session and one key.
func TestProofsDiffer(t *testing.T) {
	h := someHello
	seen := map[mac]bool{}
	add := func(m mac) {
		if seen[m] {
			t.Error("two proofs are the same")
		}
		seen[m] = true
	}
	for _, side := range []string{"client", "server"} {
		for _, binding := range []string{"one", "other"} {
			add(keyProof(1, side, []byte(binding), &h))
			add(keyProof(2, side, []byte(binding), &h))
			add(secretProof([]byte("secret"), side, []byte(binding), &h))
		}
	}
	h.session[0]++
	add(keyProof(1, "client", []byte("one"), &h))
	h.limit = 0
	add(keyProof(1, "client", []byte("one"), &h))
	h.flags = 0
	add(keyProof(1, "client", []byte("one"), &h))
}

// FuzzHello: reading ends whatever comes, and what is accepted is encoded to the same
// bytes.
func FuzzHello(f *testing.F) {
	f.Add(someHello.append(nil))
	f.Add((&answer{flags: flagKey, limit: 1e9}).append(nil))
	f.Add(wire.AppendFail(nil, "no"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := readHello(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, h.append(nil)) {
			t.Errorf("%x is %+v", b, h)
		}
		a, err := readAnswer(bytes.NewReader(b))
		var r *refusal
		switch {
		case err == nil && !bytes.HasPrefix(b, a.append(nil)):
			t.Errorf("%x is %+v", b, a)
		case errors.As(err, &r) && len(r.text) > 3*maxRefusal:
			t.Errorf("a refusal of %d bytes", len(r.text))
		}
	})
}

// FuzzGreeter: a stranger's bytes are never accepted, and never hang the greeter.
func FuzzGreeter(f *testing.F) {
	g, err := newGreeter(&Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}, Logger: hclog.NewNullLogger()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("STLS\x00\x00\x00\x00"))
	f.Add(append(preface[:], 0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3))
	f.Add([]byte("AUTH\x00\x00\x00\x04\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := g.receive(&once{r: bytes.NewReader(b)}); err == nil {
			t.Errorf("%x is a hello", b)
		}
	})
}

// once is a connection by which some bytes come and then the end.
type once struct {
	net.Conn
	r io.Reader
}

func (o *once) Read(b []byte) (int, error)       { return o.r.Read(b) }
func (o *once) Write(b []byte) (int, error)      { return len(b), nil }
func (o *once) Close() error                     { return nil }
func (o *once) SetWriteDeadline(time.Time) error { return nil }
func (o *once) SetDeadline(time.Time) error      { return nil }
func (o *once) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
