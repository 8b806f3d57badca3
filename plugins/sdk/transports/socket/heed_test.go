package socket

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Explain asks the connection below TLS how long it was silent.
func TestExplainLooksBelowTLS(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d := net.Dialer{KeepAliveConfig: KeepAlive(7 * time.Second)}
	c, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = Explain(tls.Client(c, &tls.Config{ServerName: "nobody"}), syscall.ETIMEDOUT)
	var s *link.SilentError
	if !errors.As(err, &s) || s.For != 7*time.Second {
		t.Errorf("%v", err)
	}
	if again := Explain(c, err); again != err {
		t.Errorf("%v became %v", err, again)
	}
}
