package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// Kind has what all Servers and clients of a service share. Clients and servers of different kinds
// refuse each other.
type Kind struct {
	Protocol string // in TLS's ALPN, with the version: "impi-names/2"
	Name     string // of the service, for its certificate and proofs: "impi names"

	Denied  error // wrapped if one side does not have the other's key
	Version error // wrapped if the server does not speak Protocol
}

// Keys are the ways in which an end accepts a proof. If both a key and Open are set, the key is
// preferred.
type Keys struct {
	Open bool   // no key is needed if the other end is Open too
	Key  []byte // nil: none

	// Identity is the certificate that this end shows, and whom it accepts: see Conn. If it is nil,
	// this end has no certificate, and accepts the other end for its proof alone.
	Identity *identity.Identity
}

const (
	proofSize = sha256.Size
	helloSize = 1 + proofSize
)

// Bits of the offers in a hello.
const (
	offersOpen = 1 << iota
	offersKey
)

// proof shows that its sender has the key and is an end of the connection with this secret.
// The two ends' proofs differ, so that neither can be sent back.
func (k *Kind) proof(key, secret []byte, side string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(k.Name + ": " + side))
	h.Write(secret)
	return h.Sum(nil)
}

// hello is a client's first message: what it offers, and its proof.
func (k *Kind) hello(a Keys, secret []byte) []byte {
	b := make([]byte, helloSize)
	if a.Open {
		b[0] |= offersOpen
	}
	if a.Key != nil {
		b[0] |= offersKey
		copy(b[1:], k.proof(a.Key, secret, "client"))
	}
	return b
}

// verdict is a server's answer to a hello: one byte, and a text preceded by its length in
// one byte.
type verdict struct {
	granted bool
	text    string // the server's proof if the key was used, or the reason of a refusal
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

// judge makes the server's answer to a hello, with its own proof if both have a key.
func (k *Kind) judge(a Keys, hello, secret []byte) verdict {
	switch {
	case a.Key != nil && hello[0]&offersKey != 0:
		if !hmac.Equal(hello[1:helloSize], k.proof(a.Key, secret, "client")) {
			return verdict{false, "wrong key"}
		}
		return verdict{true, string(k.proof(a.Key, secret, "server"))}
	case a.Open && hello[0]&offersOpen != 0:
		return verdict{granted: true}
	case a.Key != nil:
		return verdict{false, "this server wants a key"}
	}
	return verdict{false, "this server has no key to compare yours with"}
}

func (k *Kind) believe(a Keys, v verdict, secret []byte) error {
	switch {
	case !v.granted:
		return fmt.Errorf("%w: %s", k.Denied, v.text)
	case v.text == "" && a.Open:
		return nil
	case v.text == "":
		return fmt.Errorf("%w: the server did not ask for the key", k.Denied)
	case a.Key == nil || !hmac.Equal([]byte(v.text), k.proof(a.Key, secret, "server")):
		return fmt.Errorf("%w: the server does not have the key", k.Denied)
	}
	return nil
}

// secretOf returns a secret that only the two ends of a connection know.
func (k *Kind) secretOf(c *tls.Conn) ([]byte, error) {
	s := c.ConnectionState()
	if s.NegotiatedProtocol != k.Protocol {
		return nil, errors.New("the other side speaks another protocol")
	}
	return s.ExportKeyingMaterial(k.label(), nil, 32)
}

// label is the label for TLS's exporter (RFC 8446 §7.5).
func (k *Kind) label() string {
	b := []byte("EXPORTER-" + k.Name)
	for i, c := range b {
		if c == ' ' {
			b[i] = '-'
		}
	}
	return string(b)
}

func (k *Kind) serverTLS(id *identity.Identity) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{k.Protocol}, SessionTicketsDisabled: true}
	if id != nil {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			now := id.Certificate() // the certificate may have been replaced
			return &now, nil
		}
		c.ClientAuth = tls.RequestClientCert // judged after the proof of the key, see Conn
		return c, nil
	}
	madeUp, err := pki.SelfSigned(k.Name)
	c.Certificates = []tls.Certificate{madeUp}
	return c, err
}

// clientTLS accepts any certificate: the key, which is bound to the connection, proves who
// the server is. Its certificate is judged after that, see Conn.
func (k *Kind) clientTLS(id *identity.Identity) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{k.Protocol}, InsecureSkipVerify: true}
	if id != nil {
		c.Certificates = []tls.Certificate{id.Certificate()}
	}
	return c
}

// conn makes a Conn whose other end has proved the key. use is what its certificate must be good
// for.
func (k *Kind) conn(c *tls.Conn, id *identity.Identity, use x509.ExtKeyUsage) *Conn {
	shown := c.ConnectionState().PeerCertificates
	switch {
	case id == nil:
		return &Conn{Conn: c}
	case len(shown) == 0 || shown[0].Subject.CommonName == k.Name: // the generated certificate of a server that has none
		return &Conn{Conn: c, Refused: fmt.Errorf("%w: it has no certificate, or its job file names none", identity.ErrPeer)}
	}
	return &Conn{Conn: c, Refused: id.Judge(shown, use)}
}
