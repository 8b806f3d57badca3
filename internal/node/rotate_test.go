package node

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/operator/reload"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// rereads has sites read their job again, from what file returns then.
func rereads(job *config.Job, file func() (*config.Job, config.Diagnostics)) func(*Options) {
	return func(o *Options) {
		original := *job
		original.File = "job.hcl"
		original.Sites = slices.Clone(job.Sites)
		o.File = &reload.Source{Job: &original, Site: original.Sites[o.Site.Client], Read: func(context.Context, string) (*config.Job, config.Diagnostics) { return file() }}
	}
}

// reread has a site read its job again.
func (r *running) reread(t *testing.T) links.FileReload {
	t.Helper()
	a := r.n.control.Answer(context.Background(), links.Request{Op: links.OpReread})
	if a.Error != "" || len(a.Rereads) != 1 {
		t.Fatalf("%+v", a)
	}
	return a.Rereads[0]
}

// renew writes other certificates into the files of a site, which trusts authorities.
func renew(t *testing.T, s *config.Site, transport string, ca *pki.Authority, trusted ...*pki.Authority) {
	t.Helper()
	pair, err := ca.Issue(s.Name, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var authorities []byte
	for _, a := range trusted {
		authorities = append(authorities, a.Pair().Cert...)
	}
	x, _ := s.Transport(transport)
	for name, b := range map[string][]byte{"cert": pair.Cert, "key": pair.Key, "ca": authorities} {
		if err := os.WriteFile(x.SettingMap()[name].(string), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// probe makes a link of its own.
func (r *running) probe(transport string, from, to int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := r.n.control.Answer(ctx, links.Request{Op: links.OpProbe, Local: from, Peer: to, Transport: transport})
	if a.Error != "" {
		return fmt.Errorf("%s", a.Error)
	}
	return nil
}

// TestNewCertificatesUnderTraffic: while messages go to and fro, both sites get certificates of
// another CA. No link is lost or resumed; links that are made then have the new certificates, and
// those with a certificate of the CA that is gone are refused. Files with a fault change nothing.
func TestNewCertificatesUnderTraffic(t *testing.T) {
	for name, more := range map[string]map[string]any{"tcp": {"tls": true}, "quic": nil} {
		t.Run(name, func(t *testing.T) {
			old, fresh := pkitest.Authority(t), pkitest.Authority(t)
			job := withTransport(route(testJob("tick", 1, 1), config.Route{Prefer: []string{name}, Direct: true, Resume: true}), name,
				func(site string) map[string]any { return pkitest.Site(t, site, old, old, more) })
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			all := start(t, job, func(o *Options) {
				if o.Site.Client == 0 {
					o.Stdin = in
				}
			}, rereads(job, func() (*config.Job, config.Diagnostics) { return job, nil }))
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				defer out.Close()
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						fmt.Fprintln(out, "go")
						all[1].out.Await("tick", n+1)
					}
				}
			}()
			all[1].out.Line(t, "[1] tick 10")
			alpha, beta := &job.Sites[0], &job.Sites[1]

			renew(t, alpha, name, fresh, old)
			if x := all[0].reread(t); x.Applied || !strings.Contains(x.Problem, "no peer will accept it") {
				t.Errorf("a certificate of another CA: %+v", x)
			}
			if err := all[0].probe(name, 0, 1); err != nil {
				t.Errorf("after a fault: %v", err)
			}
			renew(t, alpha, name, old, old, fresh) // first all trust both
			renew(t, beta, name, old, old, fresh)
			for i, r := range all {
				if x := r.reread(t); !x.Applied || !slices.Contains(x.Changes, "transport "+name+": other certificates: for new links") || len(x.Restart) > 0 {
					t.Errorf("site %d: %+v", i, x)
				}
			}
			renew(t, alpha, name, fresh, old, fresh)
			all[0].reread(t)
			if err := all[0].probe(name, 0, 1); err != nil {
				t.Errorf("while both are trusted: %v", err)
			}
			renew(t, alpha, name, fresh, fresh)
			all[0].reread(t)
			for i, r := range all { // whoever dials
				if err := r.probe(name, i, 1-i); err == nil || !strings.Contains(err.Error(), "CA") {
					t.Errorf("site %d: with a certificate of the CA that is gone: %v", i, err)
				}
			}
			renew(t, beta, name, fresh, fresh)
			if x := all[1].reread(t); !x.Applied {
				t.Errorf("%+v", x)
			}
			for i, r := range all {
				if err := r.probe(name, i, 1-i); err != nil {
					t.Errorf("site %d, with new certificates: %v", i, err)
				}
			}
			if x := all[1].reread(t); !x.Applied || len(x.Changes)+len(x.Restart) > 0 {
				t.Errorf("the same files: %+v", x)
			}
			close(stop)
			<-stopped
			wantNone(t, all)
			if n := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}); n > 0 {
				t.Errorf("%d resumes: a link was lost", n)
			}
			for i, r := range all {
				if s := r.n.routes.Transport(name).Plugin.Status(); s.Starts != 1 {
					t.Errorf("site %d: %d processes of the plugin", i, s.Starts)
				}
			}
		})
	}
}
