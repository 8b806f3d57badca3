package names

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"time"

	"github.com/openimpi/impi/core/startup"
)

// FirstByte is how a client of names begins: with a record of TLS. Nothing that a site
// says in startup begins so, and one port can serve both.
const FirstByte = 0x16

const (
	protocol  = "impi-names/2" // in TLS's ALPN
	label     = "EXPORTER-impi-names"
	proofSize = sha256.Size
	helloSize = 1 + proofSize
)

// The mechanisms that a hello offers.
const (
	offersNone = 1 << iota
	offersKey
)

// proof shows that who made it has the key and is an end of the connection whose
// secret that is. The two ends' are different, so that none can be sent back.
func proof(key uint64, secret []byte, side string) []byte {
	var k [8]byte
	binary.BigEndian.PutUint64(k[:], key)
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte("impi names: " + side))
	h.Write(secret)
	return h.Sum(nil)
}

// hello is what a client says first: what it offers, and its proof.
func hello(a startup.Auth, secret []byte) []byte {
	b := make([]byte, helloSize)
	if a.None {
		b[0] |= offersNone
	}
	if a.HasKey {
		b[0] |= offersKey
		copy(b[1:], proof(a.Key, secret, "client"))
	}
	return b
}

// A verdict is what a server says of a hello: a byte and a text behind its length in a byte.
type verdict struct {
	granted bool
	text    string // the server's own proof, if the key was asked for, or why not
}

func (v verdict) append(b []byte) []byte {
	if b = append(b, 0, byte(len(v.text))); v.granted {
		b[len(b)-2] = 1
	}
	return append(b, v.text...)
}

func readVerdict(r io.Reader) (v verdict, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return v, err
	}
	text := make([]byte, head[1])
	_, err = io.ReadFull(r, text)
	return verdict{head[0] == 1, string(text)}, err
}

// judge is the server's verdict: with its own proof, if both have a key, which goes
// before no key.
func judge(a startup.Auth, b, secret []byte) verdict {
	switch {
	case a.HasKey && b[0]&offersKey != 0:
		if !hmac.Equal(b[1:helloSize], proof(a.Key, secret, "client")) {
			return verdict{false, "wrong key"}
		}
		return verdict{true, string(proof(a.Key, secret, "server"))}
	case a.None && b[0]&offersNone != 0:
		return verdict{granted: true}
	case a.HasKey:
		return verdict{false, "this server wants a key"}
	}
	return verdict{false, "this server has no key to compare yours with"}
}

// believe is the client's judgement of the server.
func believe(a startup.Auth, v verdict, secret []byte) error {
	switch {
	case !v.granted:
		return fmt.Errorf("%w: %s", ErrDenied, v.text)
	case v.text == "" && a.None:
		return nil
	case v.text == "":
		return fmt.Errorf("%w: the server did not ask for the key", ErrDenied)
	case !a.HasKey || !hmac.Equal([]byte(v.text), proof(a.Key, secret, "server")):
		return fmt.Errorf("%w: the server does not have the key", ErrDenied)
	}
	return nil
}

// greet is a client's side of the beginning: TLS, and who has the key. What is read of the
// connection after it is gRPC's.
func greet(ctx context.Context, nc net.Conn, auth startup.Auth) (net.Conn, error) {
	c := tls.Client(nc, clientTLS())
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.HandshakeContext(ctx); err != nil {
		if strings.HasSuffix(err.Error(), "no application protocol") { // crypto/tls has no error to compare with
			err = fmt.Errorf("%w: it does not speak %s", ErrVersion, protocol)
		}
		return nil, err
	}
	secret, err := secretOf(c)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(hello(auth, secret)); err != nil {
		return nil, err
	}
	v, err := readVerdict(c)
	if err != nil {
		return nil, err
	}
	if err := believe(auth, v, secret); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return c, nil
}

// secretOf gives what only the two ends of a connection know.
func secretOf(c *tls.Conn) ([]byte, error) {
	s := c.ConnectionState()
	if s.NegotiatedProtocol != protocol {
		return nil, errors.New("the other side speaks another protocol")
	}
	return s.ExportKeyingMaterial(label, nil, 32)
}

// MakeUpCertificate makes a certificate for a server that has none. It proves nothing:
// the key does.
func MakeUpCertificate(name string) (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<35, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

func serverTLS() (*tls.Config, error) {
	c, err := MakeUpCertificate("impi names")
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{c},
	}, nil
}

// clientTLS takes any certificate: who is there is proved by the key, which is bound
// to the connection.
func clientTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, InsecureSkipVerify: true}
}

// OwnerOf derives what proves to be of a job from the job's token, which it does not
// give away.
func OwnerOf(token []byte) (o Owner) {
	h := hmac.New(sha256.New, token)
	h.Write([]byte("impi: names of the job"))
	copy(o[:], h.Sum(nil))
	return o
}
