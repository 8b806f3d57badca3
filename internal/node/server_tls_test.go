package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/rendezvous/relaytest"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// relayed puts a relay between the sites of a job and their server.
func relayed(t *testing.T, job *config.Job) *relaytest.Relay {
	t.Helper()
	serveApart(t, job)
	r := relaytest.New(t, job.Sites[0].Server.Address.String(), nil)
	for i := range job.Sites {
		job.Sites[i].Server.Address = netip.MustParseAddrPort(r.Addr())
	}
	return r
}

// relayedTicks starts a job of two sites whose procs do a round for each line that say sends.
func relayedTicks(t *testing.T, job *config.Job) (all []*running, say func(round int), end func()) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	all = startSites(t, job, job.Sites, func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = in
		}
	})
	say = func(round int) {
		fmt.Fprintln(out, "go")
		all[0].out.Line(t, fmt.Sprintf("[0] tick %d", round))
	}
	return all, say, func() { out.Close() }
}

// The connections to the server are cut in the middle of a job whose links are to be resumed.
// It goes on, and ends well.
func TestServerConnectionIsCut(t *testing.T) {
	job := route(testJob("tick", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true, Resume: true})
	r := relayed(t, job)
	all, say, finish := relayedTicks(t, job)
	for i := range 3 {
		say(i)
		before := r.Connections()
		r.Cut()
		r.Await(before + 2)
	}
	r.Cut()
	finish()
	wantNone(t, all)
	for _, x := range all {
		if said := x.err.String(); !strings.Contains(said, "the connection to the server is resumed") {
			t.Errorf("nothing was resumed:\n%s", said)
		}
	}
}

// Without resume both sites go on without the server, as when it is lost, and say so once.
func TestServerConnectionIsCutWithoutResume(t *testing.T) {
	job := testJob("tick", 1, 1)
	r := relayed(t, job)
	all, say, finish := relayedTicks(t, job)
	say(0)
	r.Cut()
	for _, x := range all {
		if !x.err.Await("the job goes on without it", 1) {
			t.Error("nothing is said of the lost server")
		}
	}
	say(1)
	finish()
	wantNone(t, all)
	for i, x := range all {
		if n := strings.Count(x.err.String(), "the job's server is lost"); n != 1 {
			t.Errorf("site %d says %d times that the server is lost", i, n)
		}
	}
}

// Neither the key nor what startup says can be read between the sites and their server, with
// certificates or without.
func TestServerConnectionIsEncrypted(t *testing.T) {
	for name, job := range map[string]*config.Job{"key": testJob("all", 1, 1), "certificates": secured(t, testJob("all", 1, 1), "quic")} {
		t.Run(name, func(t *testing.T) {
			for i := range job.Sites {
				job.Sites[i].Auth.Key = 0x4b45594b45594b45
			}
			r := relayed(t, job)
			wantNone(t, startSites(t, job, job.Sites))
			key := binary.BigEndian.AppendUint64(nil, job.Sites[0].Auth.Key)
			for _, secret := range [][]byte{key, []byte("AUTH"), []byte("impi-card")} {
				if bytes.Contains(r.Bytes(), secret) {
					t.Errorf("%q can be read", secret)
				}
			}
			if !bytes.Contains(r.Bytes(), []byte("STLS")) {
				t.Error("the relay has seen nothing")
			}
		})
	}
}

// A site with certificates does not join a server whose certificate is of another CA, and
// says what to do; nor one without, unless the file says so.
func TestServerOfAnotherCA(t *testing.T) {
	for name, c := range map[string]struct {
		server func(job *config.Job)
		says   string // "": it joins
	}{
		"another CA": {func(job *config.Job) {
			ca := pkitest.Authority(t)
			job.Sites[0].Transports = withTransport(testJob("all", 1, 1), "quic", func(site string) map[string]any {
				return pkitest.Site(t, site, ca, ca, nil)
			}).Sites[0].Transports
		}, `all sites of a job need certificates of one CA`},
		"no certificate": {func(job *config.Job) { job.Sites[0].Transports = nil }, "write require_tls = false beside server"},
		"no certificate, which is meant": {func(job *config.Job) {
			job.Sites[0].Transports = nil
			for i := range job.Sites {
				job.Sites[i].Server.TLS = config.TLSOptional
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := secured(t, testJob("all", 1, 1), "quic")
			server := *job
			server.Sites = append([]config.Site(nil), job.Sites...)
			c.server(&server)
			serveApart(t, &server)
			for i := range job.Sites {
				job.Sites[i].Server = server.Sites[i].Server
			}
			all := startSites(t, job, job.Sites)
			if c.says == "" {
				wantNone(t, all)
				return
			}
			for i, f := range end(all) {
				if f == nil || !strings.Contains(f.Text, c.says) {
					t.Errorf("site %d: %v", i, f)
				}
			}
		})
	}
}
