package distribution

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/openimpi/impi/internal/pluginlock"
)

// TestMain has the process trust the certificate of httptest's servers, as SSL_CERT_FILE does.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "impi-distribution-")
	if err != nil {
		panic(err)
	}
	s := httptest.NewTLSServer(nil)
	file := filepath.Join(dir, "ca.pem")
	err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600)
	s.Close()
	if err != nil {
		panic(err)
	}
	os.Setenv("SSL_CERT_FILE", file)
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// maker is who makes a plugin: with a key, and a folder to publish.
type maker struct {
	*testing.T
	dir    string
	public string
	key    minisign.PrivateKey
}

func newMaker(t *testing.T) *maker {
	t.Helper()
	m := &maker{T: t, dir: t.TempDir()}
	m.newKey()
	return m
}

func (m *maker) newKey() {
	public, key, err := minisign.GenerateKey(nil)
	if err != nil {
		m.Fatal(err)
	}
	m.public, m.key = public.String(), key
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// binary makes a binary of a version for a platform, unsigned.
func (m *maker) binary(version, platform, text string) (file string) {
	m.Helper()
	file = filepath.Join(m.dir, FileName("ofi", version, platform))
	write(m.T, file, text, 0o755)
	return file
}

// sign signs a file as minisign does.
func (m *maker) sign(file string) {
	m.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		m.Fatal(err)
	}
	r := minisign.NewReader(bytes.NewReader(text))
	_, _ = new(bytes.Buffer).ReadFrom(r)
	write(m.T, file+signatureSuffix, string(r.SignWithComments(m.key, "timestamp:1700000000\tfile:"+filepath.Base(file)+"\thashed", "signature from minisign secret key")), 0o644)
}

// release makes and signs the binaries of a version.
func (m *maker) release(version string, platforms ...string) {
	m.Helper()
	for _, p := range platforms {
		m.sign(m.binary(version, p, "#!/bin/sh\necho "+version+" "+p+"\n"))
	}
}

func (m *maker) publish(more ...string) {
	m.Helper()
	if status, _, errs := run(m.T, append(append([]string{"publish", "-key", m.public}, more...), m.dir)...); status != 0 {
		m.Fatalf("publish: status %d\n%s", status, errs)
	}
}

// run runs a command.
func run(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	for _, c := range Commands() {
		if c.Name == args[0] {
			rest, err := c.Parse(args[1:])
			if err == nil {
				status, err = c.Run(rest, &o, &e)
			}
			if err != nil {
				fmt.Fprintln(&e, err)
				status = max(status, 1)
			}
			return status, o.String(), e.String()
		}
	}
	t.Fatal("no command ", args[0])
	return 0, "", ""
}

// job writes a job file with a plugin block.
func job(t *testing.T, source, version string, more ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "job.hcl")
	rewrite(t, path, source, version, more...)
	return path
}

func rewrite(t *testing.T, path, source, version string, more ...string) {
	t.Helper()
	text := fmt.Sprintf("plugin \"ofi\" {\n  source = %q\n", source)
	if version != "" {
		text += fmt.Sprintf("  version = %q\n", version)
	}
	write(t, path, text+strings.Join(more, "\n")+"\n}\n", 0o600)
}

func (m *maker) keys() string { return fmt.Sprintf("  keys = [%q]", m.public) }

// installed is where a version is, which must be as it was made.
func installed(t *testing.T, job, version string) {
	t.Helper()
	path := pluginlock.Path(filepath.Join(filepath.Dir(job), "plugins"), "ofi", version, pluginlock.Platform())
	text, err := os.ReadFile(path)
	info, _ := os.Stat(path)
	if err != nil || string(text) != "#!/bin/sh\necho "+version+" "+pluginlock.Platform()+"\n" || info.Mode().Perm() != 0o755 {
		t.Errorf("%s: %v, %q", path, err, text)
	}
}

// nothing checks that no binary is installed, and no part of one.
func nothing(t *testing.T, job string) {
	t.Helper()
	_ = filepath.Walk(filepath.Join(filepath.Dir(job), "plugins"), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			t.Errorf("%s is left", path)
		}
		return nil
	})
	if lock, err := pluginlock.Read(filepath.Join(filepath.Dir(job), pluginlock.Name)); err != nil || len(lock.Plugins) > 0 {
		t.Errorf("the lock file has %v, %v", lock, err)
	}
}

// refused wants install to fail with a text, and to leave nothing.
func refused(t *testing.T, job, want string) {
	t.Helper()
	status, out, errs := run(t, "install", "-config", job)
	if status != statusBad || !strings.Contains(errs, want) {
		t.Errorf("status %d, want %q in\n%s%s", status, want, out, errs)
	}
	nothing(t, job)
}

// serve serves a folder by TLS.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients are to go away
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func files(dir string) http.Handler { return http.FileServer(http.Dir(dir)) }

var background = context.Background()
