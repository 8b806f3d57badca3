package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	core "github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/names"
)

// publisher is a job at a server for names.
func publisher(t *testing.T, address string, key uint64) *names.Client {
	s := names.NewClient(names.Settings{Server: address, Auth: startup.Auth{HasKey: true, Key: key}, Owner: core.Owner{1}})
	t.Cleanup(s.Close)
	return s
}

// TestNamesForSeveralJobs has the server keep names until it gets a signal.
func TestNamesForSeveralJobs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "-names", "-key-file", file, "-host", "127.0.0.1")
	a, b, stranger := publisher(t, p.address, 7), publisher(t, p.address, 7), publisher(t, p.address, 8)
	if err := a.Publish(t.Context(), "chem", "heat", "hunter2"); err != nil {
		t.Fatal(err)
	}
	if port, err := b.Lookup(t.Context(), "chem", "heat"); err != nil || port != "hunter2" {
		t.Errorf("%q: %v", port, err)
	}
	if _, err := stranger.Lookup(t.Context(), "chem", "heat"); !errors.Is(err, names.ErrDenied) {
		t.Error(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t); code != exitOK {
		t.Errorf("exit status %d\n%s", code, p.stderr.String())
	}
	if log := p.stderr.String(); strings.Contains(log, "hunter2") || !strings.Contains(log, "service=heat") {
		t.Errorf("a port is a secret, its service is not:\n%s", log)
	}
	if _, err := b.Lookup(t.Context(), "chem", "heat"); !errors.Is(err, names.ErrUnreachable) {
		t.Error(err)
	}
}

// TestNamesOfAJob has the server of a job that runs keep its names too.
func TestNamesOfAJob(t *testing.T) {
	p := start(t, []string{"IMPI_AUTH_KEY=7"}, "-clients", "1", "-host", "127.0.0.1")
	auth := startup.Auth{HasKey: true, Key: 7}
	early := publisher(t, p.address, 7)
	if err := early.Publish(t.Context(), "", "heat", "port"); !errors.Is(err, names.ErrUnreachable) {
		t.Errorf("before the job runs: %v", err)
	}
	s, err := join(t, p.address, auth)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	if err := early.Publish(t.Context(), "", "heat", "port"); err != nil {
		t.Error(err)
	}
	if port, err := publisher(t, p.address, 7).Lookup(t.Context(), "", "heat"); err != nil || port != "port" {
		t.Errorf("%q: %v", port, err)
	}
	if _, err := publisher(t, p.address, 8).Lookup(t.Context(), "", "heat"); !errors.Is(err, names.ErrDenied) {
		t.Error(err)
	}
	if _, err := join(t, p.address, auth); !errors.Is(err, startup.ErrFailed) || !strings.Contains(err.Error(), "takes no more clients") {
		t.Errorf("a second client: %v", err)
	}
	if err := s.Finish(); err != nil {
		t.Error(err)
	}
	if code := p.end(t); code != exitOK {
		t.Errorf("exit status %d\n%s", code, p.stderr.String())
	}
}
