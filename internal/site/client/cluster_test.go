package client

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/routes"
)

// TestSignalsWhileHostsConnect: the operator may end a job, and pass signals on, at any time of its
// start. The race detector reports whether that is safe.
func TestSignalsWhileHostsConnect(t *testing.T) {
	for range 20 {
		signalWhileHostsConnect(t)
	}
}

func signalWhileHostsConnect(t *testing.T) {
	t.Helper()
	job := config.Default(1, []string{"/bin/true"}, nil)
	site := job.Sites[0]
	o := &Cluster{
		ClusterConfig: ClusterConfig{Hosts: append(site.Hosts, site.Hosts[0]), Secret: []byte("secret"), Head: "127.0.0.1:0"},
		Routes:        &routes.Table{Job: job, Site: &site}, Log: hclog.NewNullLogger(),
		Deadline: time.Now().Add(time.Hour), Ready: make(chan struct{}), Signal: func(syscall.Signal) {},
		Redirects: [2]*Redirect{NewRedirect(io.Discard), NewRedirect(io.Discard)},
	}
	o.End, _ = lifetime.New(t.Context())
	o.KeepOwnHost()
	began, over := make(chan struct{}), make(chan struct{})
	var signals sync.WaitGroup
	signals.Go(func() {
		o.Stop()
		close(began)
		for {
			o.Stop()
			o.PassSignal(syscall.SIGUSR1)
			o.KeepParents()()
			select {
			case <-over:
				return
			default:
			}
		}
	})
	<-began
	if err := o.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(over)
	signals.Wait()
	o.ReportEnd(nil, 0)
	o.Close()
	o.End.Close()
}

// TestEngineLosesAHost: what the engine sees of a host ends the job, unless the site goes on
// without its hosts: then it means nothing, as the host may have finished.
func TestEngineLosesAHost(t *testing.T) {
	for _, goesOn := range []bool{false, true} {
		job := config.Default(1, []string{"/bin/true"}, nil)
		site := job.Sites[0]
		ends := make(chan HostEnd, 1)
		o := &Cluster{
			ClusterConfig: ClusterConfig{Hosts: append(site.Hosts, site.Hosts[0]), Ends: ends}, Routes: &routes.Table{Job: job, Site: &site},
			ContinueWithout: func(hosts []int, f *ending.Failure) { t.Errorf("without %v: %v", hosts, f) },
		}
		o.survives.Store(goesOn)
		o.End, _ = lifetime.New(t.Context())
		ends <- HostEnd{1, errors.New("its ssh has ended")}
		close(ends)
		o.hearEngine()
		failing := false
		o.End.Report(func(_ time.Time, e *ending.Ending) { failing = e.Failing() })
		if failing == goesOn {
			t.Errorf("goes on %v: failing %v", goesOn, failing)
		}
	}
}
