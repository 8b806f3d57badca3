package proto

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
)

// shake makes a connection between two ends with secrets, and tells what each says of it.
func shake(t *testing.T, server, client []byte) (atServer, atClient error) {
	t.Helper()
	theirs, err := ControlTLS(server)
	if err != nil {
		t.Fatal(err)
	}
	ours := &tls.Config{ServerName: "localhost", InsecureSkipVerify: true} //nolint:gosec // who has no secret at all
	if client != nil {
		if ours, err = ControlTLS(client); err != nil {
			t.Fatal(err)
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, theirs)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		done <- errors.Join(err, a.Close())
	}()
	c := tls.Client(b, ours)
	atClient = c.Handshake()
	if atClient == nil {
		_, atClient = io.ReadFull(c, make([]byte, 1))
	}
	b.Close()
	return <-done, atClient
}

func TestControlConnection(t *testing.T) {
	one, other := NewControlSecret(), NewControlSecret()
	if s, c := shake(t, one, one); s != nil || c != nil {
		t.Errorf("the same secret: %v, %v", s, c)
	}
	if _, c := shake(t, one, other); c == nil {
		t.Error("a client took the certificate of another secret")
	}
	if s, _ := shake(t, one, nil); s == nil {
		t.Error("a server took a client without a secret")
	}
	if _, err := ControlTLS(one[1:]); err == nil {
		t.Error("a secret of 31 bytes is taken")
	}
}
