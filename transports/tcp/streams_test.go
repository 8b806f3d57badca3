package tcp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/tcp"
)

func TestSuiteStreams(t *testing.T) {
	ca := pkitest.Authority(t)
	for name, c := range map[string]struct {
		listens, dials map[string]any
		at             transports.ListenSpec
	}{
		"Plain": {map[string]any{"streams": 4.0}, map[string]any{"streams": 4.0}, transports.ListenSpec{Host: "127.0.0.2"}},
		"TLS": {
			pkitest.Site(t, "alpha", ca, ca, map[string]any{"tls": true, "streams": 3.0}),
			pkitest.Site(t, "beta", ca, ca, map[string]any{"tls": true}), transports.ListenSpec{Host: "127.0.0.2"},
		},
		"Near":             {map[string]any{"streams": 4.0}, nil, transports.ListenSpec{Host: "127.0.0.2"}},
		"SeveralAddresses": {map[string]any{"streams": 3.0, "also": []string{"::1"}}, nil, transports.ListenSpec{Host: "127.0.0.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				far := configured(t, c.dials)
				if name != "Near" {
					far.NearNobody()
				}
				return transporttest.Harness{
					Transport: keeps{configured(t, c.listens)}, Dialler: keeps{far}, Large: 16 << 20,
					Listen: c.at, From: "127.0.0.3",
				}
			})
		})
	}
}

// The side that listens says how many connections a link has. Whoever has another setting dials as
// many.
func TestListenerChoosesStreams(t *testing.T) {
	one, four := configured(t, map[string]any{"streams": 1.0}), configured(t, map[string]any{"streams": 4.0})
	one.NearNobody()
	four.NearNobody()
	for name, c := range map[string]struct {
		listens, dials *tcp.Transport
		suffix         string
	}{
		"Four": {four, one, "/4"},
		"One":  {one, four, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ln := listen(t, c.listens, transports.ListenSpec{Host: "127.0.0.1"})
			if at := ln.Address(); !strings.HasSuffix(at, c.suffix) || c.suffix == "" && strings.Contains(at, "/") {
				t.Errorf("the address is %s", at)
			}
			a, err := c.dials.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			b, err := ln.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if n, err := a.Send([][]byte{[]byte("hello")}); n != 5 || err != nil {
				t.Errorf("Send gives %d, %v", n, err)
			}
			if _, piped := b.(transports.Piped); piped != (c.suffix != "") {
				t.Errorf("the accepted link is a %T", b)
			}
		})
	}
}

// A listener for channels is one for hosts that know nothing of several connections: what comes is
// a link from its first byte on.
func TestChannelsAreOneConnection(t *testing.T) {
	ln := listen(t, configured(t, nil), transports.ListenSpec{Host: "127.0.0.1", IPChannel: true})
	c, err := net.Dial("tcp", ln.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, ok := l.(transports.Socket); !ok {
		t.Errorf("the link is a %T", l)
	}
}

// A peer that is near gets one connection, which a proc can have to itself.
func TestNearPeersHaveOneConnection(t *testing.T) {
	four := configured(t, map[string]any{"streams": 4.0})
	ln := listen(t, four, transports.ListenSpec{Host: "127.0.0.1"})
	for range 5 { // on a busy machine the first ones may seem to be far
		a, err := four.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
		if err != nil {
			t.Fatal(err)
		}
		b, err := ln.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, dialled := a.(transports.Socket)
		_, accepted := b.(transports.Socket)
		a.Close()
		b.Close()
		if dialled != accepted {
			t.Fatalf("one side has a socket, the other one not: %v, %v", dialled, accepted)
		}
		if dialled {
			return
		}
	}
	t.Error("none of the links is a socket")
}

func TestCapabilitiesOfStreams(t *testing.T) {
	c := configured(t, map[string]any{"streams": 2.0}).Capabilities()
	if c.Has(transports.FeatureIPChannel) || !c.Has(transports.FeatureIPChannelIfAsked) || c.DataPlanes[0] != transports.PlaneFD || len(c.DataPlanes) != 4 {
		t.Errorf("foreign hosts would have to know of several connections, or procs do not get those of near peers: %v", c)
	}
	for _, bad := range []float64{0, 1.5, 33, -1} {
		var fault *transports.SettingError
		if err := tcp.New().Configure(map[string]any{"streams": bad}); !errors.As(err, &fault) || fault.Name != "streams" {
			t.Errorf("streams = %v: %v", bad, err)
		}
	}
}

// Strangers get a reason, and do not keep others from making links.
func TestStrangersAtStreams(t *testing.T) {
	tr := configured(t, map[string]any{"streams": 2.0})
	tr.NearNobody()
	ln := listen(t, tr, transports.ListenSpec{Host: "127.0.0.1"})
	at, _, _ := strings.Cut(ln.Address(), "/")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	hello := func(count, id byte) []byte {
		return append([]byte{'i', 'm', 'p', 'S', 2, 1, count, 0}, bytes.Repeat([]byte{id}, 16)...)
	}
	for i := range byte(50) { // whose link there is not
		if _, err := dial().Write(hello(2, i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, begin := range map[string][]byte{"a client of the web": []byte(strings.Repeat("GET / HTTP/1.1\r\n", 2)), "too many": hello(32, 100)} {
		c := dial()
		if _, err := c.Write(begin); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: got %d bytes, %v", name, n, err)
		}
	}
	made := make(chan error, 1)
	var refused int
	go func() {
		for {
			l, err := ln.Accept(t.Context())
			var te *transports.Error
			if errors.As(err, &te) && te.Retryable {
				refused++
				continue
			}
			if err == nil {
				l.Close()
			}
			made <- err
			return
		}
	}()
	l, err := tr.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	if refused == 0 {
		t.Error("nobody hears that strangers were turned away")
	}
}

// A peer that does not answer as one of ours is an error that says what came.
func TestDialSeveralToAStranger(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 mail.example\r\n")
			defer c.Close()
		}
	}()
	far := tcp.New()
	far.NearNobody()
	_, err = far.Dial(t.Context(), transports.DialSpec{Address: ln.Addr().String() + "/2"})
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeProtocol || !strings.Contains(err.Error(), "answers with the byte") {
		t.Errorf("it is said: %v", err)
	}
}
