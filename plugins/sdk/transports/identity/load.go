package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/keyfile"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

const maxFile = 1 << 20

// Settings returns the settings of a transport's schema for its identity. required says
// whether the files must be given.
func Settings(required bool) []transports.Setting {
	s := []transports.Setting{
		{Name: "cert", Type: transports.TypePath, Doc: "file of the site's certificate, PEM; impi-node cert makes one"},
		{Name: "key", Type: transports.TypePath, Doc: "file of the certificate's private key, PEM, which nobody but its owner may read"},
		{Name: "ca", Type: transports.TypePath, Doc: "file of the CA that has signed the certificates of all sites, PEM"},
		{Name: "peers", Type: transports.TypeStrings, Default: []string{}, Doc: "names that peers' certificates may have; empty: all that the CA has signed"},
	}
	for i := range s[:3] {
		s[i].Required = required
		if !required {
			s[i].Default = ""
		}
	}
	return s
}

// Load reads the files that the settings name. It returns all faults, as
// *transports.SettingError, joined.
func Load(given map[string]any) (*Identity, error) {
	f := &files{certFile: text(given, "cert"), caFile: text(given, "ca")}
	if peers, ok := given["peers"].([]string); ok && len(peers) > 0 {
		f.peers = append([]string(nil), peers...)
	}
	certPEM, certErr := read("cert", f.certFile)
	keyPEM, keyErr := read("key", text(given, "key"))
	caPEM, caErr := read("ca", f.caFile)
	if keyErr == nil {
		keyErr = private(text(given, "key"))
	}
	if caErr == nil {
		f.trusted, caErr = pool(f.caFile, caPEM)
	}
	if certErr == nil {
		f.leaf, certErr = leaf(f.certFile, certPEM)
	}
	if err := errors.Join(certErr, keyErr, caErr); err != nil {
		return nil, err
	}
	id := &Identity{files: new(atomic.Pointer[files]), now: time.Now}
	id.files.Store(f)
	return id, f.complete(certPEM, keyPEM, text(given, "key"), id)
}

// complete combines certificate and key and checks that they fit together, before id is used.
func (f *files) complete(certPEM, keyPEM []byte, keyFile string, id *Identity) (err error) {
	if f.own, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return &transports.SettingError{
			Name: "key", Problem: fmt.Sprintf("%s is not the key of the certificate in %s: %v", keyFile, f.certFile, err),
			Remedy: "give certificate and key of one site"}
	}
	f.own.Leaf = f.leaf
	if f.leaf.IsCA {
		return &transports.SettingError{
			Name: "cert", Problem: fmt.Sprintf("%s is the certificate of a CA, not of a site", f.certFile),
			Remedy: "give the site's own certificate, and leave the CA's key where nobody runs jobs"}
	}
	options := x509.VerifyOptions{Roots: f.trusted, CurrentTime: id.now(), Intermediates: x509.NewCertPool()}
	for _, der := range f.own.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			options.Intermediates.AddCert(c)
		}
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		options.KeyUsages = []x509.ExtKeyUsage{use}
		if _, err := f.leaf.Verify(options); err != nil {
			return &transports.SettingError{
				Name: "cert", Problem: fmt.Sprintf("%s: no peer will accept it: %s", f.certFile, id.blame(f.leaf, err)),
				Remedy: "make a new one with: impi-node cert issue"}
		}
	}
	return nil
}

func text(given map[string]any, name string) string {
	s, _ := given[name].(string)
	return s
}

func read(setting, path string) ([]byte, error) {
	if path == "" {
		return nil, &transports.SettingError{
			Name: setting, Problem: "no file is given", Remedy: "name one; impi-node cert init makes them all"}
	}
	b, err := plainfile.Read(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &transports.SettingError{
			Name: setting, Problem: fmt.Sprintf("there is no file %s", path), Remedy: "correct the name, or make the file with: impi-node cert"}
	case err != nil:
		return nil, &transports.SettingError{Name: setting, Problem: err.Error(), Remedy: "give a PEM file that can be read"}
	}
	return b, nil
}

// private returns an error for a key file that others can read.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil || keyfile.Private(info) {
		return nil // the file was read, but has been removed since
	}
	return &transports.SettingError{
		Name: "key", Problem: fmt.Sprintf("others than its owner can read %s: its mode is %04o", path, info.Mode().Perm()), Remedy: "chmod 600 " + path}
}

func pool(path string, b []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	found := false
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue
		}
		if !c.IsCA {
			return nil, &transports.SettingError{
				Name: "ca", Problem: fmt.Sprintf("%s has the certificate of %s, which is no CA", path, describe(c)), Remedy: "give the file of the CA that has signed the sites' certificates"}
		}
		p.AddCert(c)
		found = true
	}
	if !found {
		return nil, &transports.SettingError{Name: "ca", Problem: path + " has no certificate in PEM form", Remedy: "give the file of the job's CA"}
	}
	return p, nil
}

// leaf returns the site's own certificate, the first one of its file.
func leaf(path string, b []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, &transports.SettingError{Name: "cert", Problem: path + " does not begin with a certificate in PEM form", Remedy: "give the file of the site's certificate"}
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, &transports.SettingError{Name: "cert", Problem: fmt.Sprintf("%s: %v", path, err), Remedy: "give the file of the site's certificate"}
	}
	return c, nil
}
