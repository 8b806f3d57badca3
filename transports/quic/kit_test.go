package quic_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/pki"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/quic"
)

// authority makes a CA that has just begun.
func authority(t testing.TB) *pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority("test", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// site gives the settings of a site with a certificate of ca, trusting only
// trusted.
func site(t testing.TB, name string, ca, trusted *pki.Authority, more map[string]any) map[string]any {
	t.Helper()
	pair, err := ca.Issue(name, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return files(t, pair, trusted, more)
}

// files are the settings with a certificate that was made elsewhere.
func files(t testing.TB, pair pki.Pair, trusted *pki.Authority, more map[string]any) map[string]any {
	t.Helper()
	dir := t.TempDir()
	settings := transports.Defaults(quic.New().Schema())
	for setting, content := range map[string][]byte{"cert": pair.Cert, "key": pair.Key, "ca": trusted.Pair().Cert} {
		path := filepath.Join(dir, setting+".pem")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		settings[setting] = path
	}
	for k, v := range more {
		settings[k] = v
	}
	return settings
}

// started makes a transport with settings; it ends with the test.
func started(t testing.TB, settings map[string]any) *quic.Transport {
	t.Helper()
	x := quic.New()
	if err := x.Configure(settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// two are the transports of two sites of one job.
func two(t testing.TB, more map[string]any) (alpha, beta *quic.Transport) {
	t.Helper()
	ca := authority(t)
	return started(t, site(t, "alpha", ca, ca, more)), started(t, site(t, "beta", ca, ca, more))
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

// write makes a file with some content.
func write(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readable is a copy of a file that everybody can read.
func readable(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := write(t, b)
	if err := os.Chmod(copied, 0o644); err != nil {
		t.Fatal(err)
	}
	return copied
}
