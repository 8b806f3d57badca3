package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// stop ends a job by one SIGTERM, which must not take longer than limit.
func (r *running) stop(t *testing.T, limit time.Duration) {
	t.Helper()
	begun := time.Now()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	_, _ = r.cmd.Process.Wait() // how it ended matters to other tests
	if took := time.Since(begun); took > limit {
		t.Errorf("the job has needed %v to end", took)
	}
}

// TestReloadOfAPipe: a certificate that has become a pipe, which nobody writes to, is a fault of
// the file; the node answers on and ends when it should.
func TestReloadOfAPipe(t *testing.T) {
	certs := certificatesOn(t, pkitest.Authority(t), time.Now())
	r := startJob(t, 2, "-config", file(t, twoSites+strings.ReplaceAll(withCertificates, "${env.CERTS}", certs)))
	cert := filepath.Join(certs, "site.pem")
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(cert, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := r.reload(t); status != statusBad || !strings.Contains(errs, "site.pem: it is a pipe and no regular file") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if status, job := r.report(t); status != statusOK || len(job.Pairs) != 1 {
		t.Errorf("status %d, %+v", status, job)
	}
	r.stop(t, 20*time.Second)
}

// TestEndDuringAReload: a plugin that is tried for a reload, and says nothing, does not keep the
// job from ending, whoever has asked for the reload.
func TestEndDuringAReload(t *testing.T) {
	for _, how := range []string{"command", "signal"} {
		t.Run(how, func(t *testing.T) {
			plugins := t.TempDir()
			chaosPlugin(t, plugins, "chaos")
			tried := filepath.Join(plugins, "tried")
			if err := syscall.Mkfifo(tried, 0o600); err != nil {
				t.Fatal(err)
			}
			silent := filepath.Join(plugins, "impi-transport-silent")
			if err := os.WriteFile(silent, []byte("#!/bin/sh\necho tried >"+tried+"\nexec sleep 600\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			path := file(t, twoSites+"plugin_dir = \""+plugins+"\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  confine = false\n  config { around = \"tcp\" }\n}\n")
			r := startProgramAs(t, func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }, launchtest.ShortDir(t), "exchange", 2, "-config", path)
			rewrite(t, path, `plugin = "impi-transport-chaos"`, `plugin = "impi-transport-silent"`)
			if how == "signal" {
				if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
			} else {
				asked := make(chan struct{})
				go func() {
					defer close(asked)
					_, _, _ = r.reload(t) // the job ends before it is answered
				}()
				defer func() { <-asked }()
			}
			in, err := os.Open(tried) // until the plugin is there
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, in)
			in.Close()
			r.stop(t, 8*time.Second)
		})
	}
}
