package main

import (
	"bufio"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/rendezvous/relaytest"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// reloading is a server whose files a test changes.
type reloading struct {
	*process
	log                     *bufio.Scanner
	cert, key, ca, logLevel string
}

// startReloading starts a server of two clients with a certificate of ca.
func startReloading(t *testing.T, ca *pki.Authority) *reloading {
	t.Helper()
	r := &reloading{}
	dir := t.TempDir()
	r.cert, r.key, r.ca, r.logLevel = filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca"), filepath.Join(dir, "level")
	r.issue(t, ca, ca)
	r.write(t, r.logLevel, []byte("info\n"))
	log, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	t.Cleanup(func() { log.Close() })
	r.log = bufio.NewScanner(log)
	r.process = startAs(t, func(cmd *exec.Cmd) { cmd.Stderr = w }, []string{envKey + "=77"}, "-clients", "2", "-host", "127.0.0.1", "-require-tls",
		"-cert", r.cert, "-key", r.key, "-ca", r.ca, "-log-level-file", r.logLevel)
	return r
}

func (r *reloading) write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue writes a new certificate of ca, beside the authority that is trusted.
func (r *reloading) issue(t *testing.T, ca, trusted *pki.Authority) {
	t.Helper()
	pair, err := ca.Issue("server", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, r.cert, pair.Cert)
	r.write(t, r.key, pair.Key)
	r.write(t, r.ca, trusted.Pair().Cert)
}

// reload sends SIGHUP and waits for a line of the log.
func (r *reloading) reload(t *testing.T, want string) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.says(t, want)
}

func (r *reloading) says(t *testing.T, want string) {
	t.Helper()
	for r.log.Scan() {
		if strings.Contains(r.log.Text(), want) {
			return
		}
	}
	t.Fatalf("it never said %q", want)
}

// joinBy joins as a client with a certificate.
func joinBy(t *testing.T, address string, rank wire.ClientRank, id *rendezvous.Identity) (*rendezvous.Client, error) {
	t.Helper()
	host := wire.HostIDFrom(netip.MustParseAddr("127.0.0.1"), wire.IPv4Compatible)
	s, _, err := rendezvous.Join(t.Context(), rendezvous.Settings{
		Server: address, Own: &rendezvous.OwnServer{Identity: id, NeedTLS: true, Resume: time.Minute},
	}, startup.ClientConfig{
		Rank: rank, Auth: startup.Auth{HasKey: true, Key: 77}, Params: startup.DefaultParams(),
		Hosts: []startup.HostConfig{{Address: host, Port: 5000 + int(rank), Procs: []startup.ProcConfig{{ID: wire.Proc{Host: host, PID: 1 + int64(rank)}}}}},
	})
	return s, err
}

func identityOf(t *testing.T, ca *pki.Authority) *rendezvous.Identity {
	t.Helper()
	id, err := rendezvous.LoadIdentity(pkitest.Site(t, "site", ca, ca, nil), "/")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestReloadOfTheServer: SIGHUP takes new certificates and a new level, a connection that there is
// goes on and is resumed by the new ones, and files with faults change nothing.
func TestReloadOfTheServer(t *testing.T) {
	old, fresh := pkitest.Authority(t), pkitest.Authority(t)
	r := startReloading(t, old)
	relay := relaytest.New(t, r.address, nil)
	first := identityOf(t, old)
	type joined struct {
		s   *rendezvous.Client
		err error
	}
	came := make(chan joined, 1)
	go func() { // returns when both are there
		s, err := joinBy(t, relay.Addr(), 0, first)
		came <- joined{s, err}
	}()
	r.says(t, "client joined")

	r.issue(t, fresh, old) // which no peer would accept
	r.write(t, r.logLevel, []byte("debug\n"))
	r.reload(t, "reloaded nothing")
	r.issue(t, fresh, fresh)
	r.write(t, r.logLevel, []byte("loud\n"))
	r.reload(t, `has \"loud\"`)
	if _, err := joinBy(t, r.address, 1, identityOf(t, fresh)); err == nil {
		t.Fatal("a certificate of a CA that was not taken")
	}
	r.write(t, r.logLevel, []byte("error\n"))
	r.reload(t, "new connections use the certificate")
	r.says(t, "from=info to=error")
	r.reload(t, "new connections use the certificate") // whatever the level
	r.write(t, r.logLevel, []byte("debug\n"))
	r.reload(t, "new connections use the certificate")
	r.says(t, "from=error to=debug")

	if _, err := joinBy(t, r.address, 1, identityOf(t, old)); !errors.Is(err, startup.ErrAuth) {
		t.Errorf("a certificate of the CA that is gone: %v", err)
	}
	first.Replace(identityOf(t, fresh))
	relay.Cut()
	s, err := joinBy(t, r.address, 1, identityOf(t, fresh))
	if err != nil {
		t.Fatal(err)
	}
	j := <-came
	if j.err != nil {
		t.Fatal(j.err)
	}
	for _, c := range []*rendezvous.Client{s, j.s} {
		go func() { _ = c.Finish() }() // whether it went well says the server
	}
	r.says(t, "is resumed")
	for r.log.Scan() {
	}
	if code := r.end(t); code != exitOK {
		t.Errorf("status %d", code)
	}
}

// TestReloadOfPipes: files that have become pipes change nothing, and SIGTERM ends the server.
func TestReloadOfPipes(t *testing.T) {
	for _, name := range []string{"certificate", "level"} {
		t.Run(name, func(t *testing.T) {
			r := startReloading(t, pkitest.Authority(t))
			path := map[string]string{"certificate": r.cert, "level": r.logLevel}[name]
			if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
			r.reload(t, "it is a pipe and no regular file")
			if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			for r.log.Scan() {
			}
			if code := r.end(t); code != exitSignal+int(syscall.SIGTERM) {
				t.Errorf("status %d", code)
			}
		})
	}
}

// TestSignalDuringAReload: a reload that hangs does not keep the server.
func TestSignalDuringAReload(t *testing.T) {
	began, goes := make(chan struct{}, 1), make(chan struct{})
	ctx, stop := untilSignal(func() { began <- struct{}{}; <-goes })
	defer stop()
	defer close(goes)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		if s == syscall.SIGHUP {
			<-began
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Error("SIGTERM is not heeded")
	}
}
