// Package pkitest makes certificates for tests, in files as a transport's settings
// name them.
package pkitest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/pki"
)

// Authority makes a CA whose validity has just begun.
func Authority(t testing.TB) *pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority("test", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// Site returns the settings cert, key and ca of a site with a certificate of ca that
// trusts only trusted, and more settings.
func Site(t testing.TB, name string, ca, trusted *pki.Authority, more map[string]any) map[string]any {
	t.Helper()
	pair, err := ca.Issue(name, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return Files(t, pair, trusted, more)
}

// Files returns the same settings as Site, for a certificate that was made elsewhere.
func Files(t testing.TB, pair pki.Pair, trusted *pki.Authority, more map[string]any) map[string]any {
	t.Helper()
	settings := map[string]any{
		"cert": Write(t, pair.Cert), "key": Write(t, pair.Key), "ca": Write(t, trusted.Pair().Cert),
	}
	for k, v := range more {
		settings[k] = v
	}
	return settings
}

// Write makes a file that only its owner can read.
func Write(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
