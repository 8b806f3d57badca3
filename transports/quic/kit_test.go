package quic_test

import (
	"maps"
	"os"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
)

// started makes a transport with settings; it ends with the test.
func started(t testing.TB, settings map[string]any) *quic.Transport {
	t.Helper()
	x := quic.New()
	full := transports.Defaults(x.Schema())
	full["streams"] = 1.0 // most tests look at the packets of one connection
	maps.Copy(full, settings)
	if err := x.Configure(full); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// two are the transports of two sites of one job.
func two(t testing.TB, more map[string]any) (alpha, beta *quic.Transport) {
	t.Helper()
	ca := pkitest.Authority(t)
	return started(t, pkitest.Site(t, "alpha", ca, ca, more)), started(t, pkitest.Site(t, "beta", ca, ca, more))
}

func listen(t testing.TB, x *quic.Transport, host string) transports.Listener {
	t.Helper()
	ln, err := x.Listen(t.Context(), transports.ListenSpec{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// join makes a link to an address at which ln answers.
func join(t testing.TB, x *quic.Transport, ln transports.Listener, address string) (dialled, accepted link.Link) {
	t.Helper()
	a, err := x.Dial(t.Context(), transports.DialSpec{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	b, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return a, b
}

// readable is a copy of a file that everybody can read.
func readable(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := pkitest.Write(t, b)
	if err := os.Chmod(copied, 0o644); err != nil {
		t.Fatal(err)
	}
	return copied
}
