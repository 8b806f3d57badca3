package quic_test

import (
	"maps"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
)

// reconfigure gives a transport other certificates.
func reconfigure(t *testing.T, x *quic.Transport, settings map[string]any) {
	t.Helper()
	full := transports.Defaults(x.Schema())
	maps.Copy(full, settings)
	if err := x.Configure(full); err != nil {
		t.Fatal(err)
	}
}

// lives sends a byte over a link.
func lives(t *testing.T, near, far link.Link) {
	t.Helper()
	for sent := 0; sent == 0; {
		var err error
		if sent, err = near.Send([][]byte{{7}}); err != nil {
			t.Fatal(err)
		}
	}
	var b [1]byte
	for n := 0; n == 0; {
		var err error
		if n, err = far.Recv([][]byte{b[:]}); err != nil {
			t.Fatal(err)
		}
	}
	if b[0] != 7 {
		t.Fatalf("%d came", b[0])
	}
}

// TestNewCertificates: links go on over the connections that they have, and what is made later is
// judged by the new files, also on a connection that is there.
func TestNewCertificates(t *testing.T) {
	old, fresh := pkitest.Authority(t), pkitest.Authority(t)
	alpha := started(t, pkitest.Site(t, "alpha", old, old, nil))
	// It accepts what alpha shows, before and after; alpha will not accept what it shows.
	beta := started(t, both(t, pkitest.Site(t, "beta", old, old, nil), old, fresh))
	ln := listen(t, alpha, "127.0.0.1")
	near, far := join(t, beta, ln, ln.Address())
	lives(t, near, far)

	bad := transports.Defaults(alpha.Schema())
	maps.Copy(bad, pkitest.Site(t, "alpha", fresh, old, nil))
	if err := alpha.Configure(bad); err == nil {
		t.Fatal("a certificate of another CA was taken")
	}
	join(t, beta, ln, ln.Address())

	reconfigure(t, alpha, both(t, pkitest.Site(t, "alpha", fresh, fresh, nil), fresh, old))
	join(t, beta, ln, ln.Address()) // both CAs are accepted while certificates are replaced
	reconfigure(t, alpha, pkitest.Site(t, "alpha", fresh, fresh, nil))
	l, err := beta.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err == nil {
		l.Close()
		t.Fatal("a link with a certificate of the CA that is gone")
	}
	authError(t, err, "dial", "does not trust our CA")
	reconfigure(t, beta, pkitest.Site(t, "beta", fresh, fresh, nil))
	again, there := joinPast(t, beta, ln)
	lives(t, again, there)
	lives(t, far, near)
	lives(t, near, far)
}

// joinPast is join where a refused dial may be reported first.
func joinPast(t *testing.T, x *quic.Transport, ln transports.Listener) (dialled, accepted link.Link) {
	t.Helper()
	dialled, err := x.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	for {
		accepted, err := ln.Accept(t.Context())
		if err == nil {
			t.Cleanup(func() { accepted.Close() })
			return dialled, accepted
		}
		authError(t, err, "accept", "was not signed by the CA")
	}
}
