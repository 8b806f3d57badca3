package conn_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over is a transport whose links are conn.Links over what wrap makes of a TCP
// connection.
type over struct {
	wrap func(c net.Conn, server bool) transports.Conn
}

func (over) Info() transports.Info { return transports.Info{Name: "over", Version: "1"} }
func (over) Capabilities() transports.Capabilities {
	return transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneRing}, Reach: transports.ReachNetwork}
}
func (over) Schema() []transports.Setting   { return nil }
func (over) Configure(map[string]any) error { return nil }

func (o over) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	if _, err := netip.ParseAddrPort(to.Address); err != nil {
		return nil, socket.BadAddress("over", "dial", to.Address, "no address")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, socket.Failure("over", "dial", to.Address, err)
	}
	return conn.New(o.wrap(c, false)), nil
}

func (o over) Listen(context.Context, transports.ListenSpec) (transports.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, socket.Failure("over", "listen", "", err)
	}
	return &listener{o, ln.Addr().String(), socket.NewAcceptor(ln.(*net.TCPListener))}, nil
}

type listener struct {
	over
	address string
	*socket.Acceptor
}

func (l *listener) Address() string { return l.address }
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	c, err := l.Acceptor.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return conn.New(l.wrap(c.(net.Conn), true)), nil
}

func plain(c net.Conn, _ bool) transports.Conn { return c.(*net.TCPConn) }

// hidden is a connection without a half-close.
type hidden struct{ net.Conn }

func framed(c net.Conn, _ bool) transports.Conn { return conn.Framed(hidden{c}) }

func secure(c net.Conn, server bool) transports.Conn {
	if server {
		return shaken{tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate()}})}
	}
	return shaken{tls.Client(c, &tls.Config{InsecureSkipVerify: true})}
}

// shaken shakes hands when it must: a real transport does so before it makes a link.
type shaken struct{ *tls.Conn }

func (s shaken) CloseWrite() error {
	if err := s.Handshake(); err != nil {
		return err
	}
	return s.Conn.CloseWrite()
}

var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// pair makes two connected links.
func pair(t testing.TB, wrap func(net.Conn, bool) transports.Conn) (a, b *conn.Link) {
	t.Helper()
	o := over{wrap}
	ln, err := o.Listen(t.Context(), transports.ListenSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	x, err := o.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	y, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close(); y.Close() })
	return x.(*conn.Link), y.(*conn.Link)
}
