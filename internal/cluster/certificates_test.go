package cluster

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/auth"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// identityOf makes a certificate of ca for a host that trusts some CAs.
func identityOf(t *testing.T, ca *pki.Authority, trusted ...*pki.Authority) *identity.Identity {
	t.Helper()
	var roots []byte
	for _, x := range trusted {
		roots = slices.Concat(roots, x.Pair().Cert)
	}
	id, err := identity.Load(pkitest.Site(t, "alpha", ca, ca, map[string]any{"ca": pkitest.Write(t, roots)}))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestHostsWithCertificates come together, and say who they are, beside the secret.
func TestHostsWithCertificates(t *testing.T) {
	ca := pkitest.Authority(t)
	s := newSite(t, 4, 2)
	s.change = func(c *Config) { c.Identity = identityOf(t, ca, ca) }
	s.begin()
	if b, err := s.hosts[3].Ask(t.Context(), 2, []byte("who?")); err != nil || string(b) != "2: who?" {
		t.Errorf("%q, %v", b, err)
	}
	s.hosts[0].End(nil)
	s.close()
}

// TestCertificatesThatAreNotAccepted: whoever it is that does not accept the other, the head hears
// which host cannot be part of the site, and the host how the job ends.
func TestCertificatesThatAreNotAccepted(t *testing.T) {
	ours, theirs := pkitest.Authority(t), pkitest.Authority(t)
	good, foreign, both := identityOf(t, ours, ours), identityOf(t, theirs, theirs), identityOf(t, ours, ours, theirs)
	late := good.At(func() time.Time { return time.Now().Add(2 * time.Hour) })
	for name, c := range map[string]struct {
		of   []*identity.Identity // of the hosts, each of which is the parent of the next
		odd  int                  // who cannot be part
		want string
	}{
		"none":          {[]*identity.Identity{good, nil}, 1, "node0 does not accept that of node1: it has no certificate, or its job file names none"},
		"none at head":  {[]*identity.Identity{nil, good}, 1, "node1 does not accept that of node0: it has no certificate, or its job file names none"},
		"foreign":       {[]*identity.Identity{both, foreign}, 1, "node1 does not accept that of node0: the certificate of \"alpha\" was not signed by the CA"},
		"expired":       {[]*identity.Identity{late, good}, 1, "node0 does not accept that of node1: the certificate of \"alpha\" expired on"},
		"expired head":  {[]*identity.Identity{good, late}, 1, "node1 does not accept that of node0: the certificate of \"alpha\" expired on"},
		"at the parent": {[]*identity.Identity{both, good, identityOf(t, theirs, ours, theirs)}, 2, "node1 does not accept that of node2: the certificate of \"alpha\" was not signed by the CA"},
		"of the parent": {[]*identity.Identity{both, identityOf(t, theirs, ours, theirs), good}, 2, "node2 does not accept that of node1: the certificate of \"alpha\" was not signed by the CA"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, len(c.of), 1)
			s.change = func(cfg *Config) {
				cfg.Identity = c.of[cfg.Self]
				cfg.Report = func(why error) []byte { return []byte(why.Error()) }
			}
			for i := range c.odd {
				if err := s.open(i); err != nil {
					t.Fatal(err)
				}
			}
			opened := make(chan error, 1)
			go func() { opened <- s.open(c.odd) }()
			var said string
			select {
			case said = <-s.owners[0].unfit:
			case said = <-s.owners[0].fails:
			}
			if !strings.HasPrefix(said, string(rune('0'+c.odd))+" ") || !strings.Contains(said, c.want) || !strings.Contains(said, ErrCertificate.Error()) {
				t.Errorf("the head hears %q, not %q", said, c.want)
			}
			s.hosts[0].End([]byte("over"))
			err := <-opened
			if !errors.Is(err, ErrOver) && !(errors.Is(err, ErrUnfit) && strings.Contains(err.Error(), c.want)) {
				t.Errorf("the host: %v", err)
			}
			s.close()
		})
	}
}

// TestWithoutAReport: a host that does not accept the head ends with the reason if it cannot tell
// it.
func TestWithoutAReport(t *testing.T) {
	ca := pkitest.Authority(t)
	s := newSite(t, 2, 2)
	if err := s.open(0); err != nil {
		t.Fatal(err)
	}
	s.change = func(c *Config) { c.Identity = identityOf(t, ca, ca) }
	if err := s.open(1); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "node1 does not accept that of node0") {
		t.Error(err)
	}
	s.close()
}

// TestWithoutACertificate: who has the secret and no certificate may say who it is, and nothing
// else.
func TestWithoutACertificate(t *testing.T) {
	ca := pkitest.Authority(t)
	s := newSite(t, 2, 2)
	s.change = func(c *Config) { c.Identity = identityOf(t, ca, ca) }
	if err := s.open(0); err != nil {
		t.Fatal(err)
	}
	s.change = nil
	stranger := &Host{cfg: s.config(1)}
	stranger.cfg.Dial = s.hosts[0].cfg.Dial
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	up, err := stranger.cfg.dial(ctx, 0, s.head.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	client := proto.NewClusterClient(up.rpc)
	write, err := client.Write(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = write.Send(&proto.Output{Host: 1, Lines: []byte("I am here\n")})
	_, writeErr := write.CloseAndRecv()
	read, err := client.Read(ctx, &proto.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	_, readErr := read.Recv()
	attach, err := client.Attach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = attach.Send(&proto.Up{Word: &proto.Up_Hello{Hello: &proto.Newcomer{Host: 1, Version: "1", File: []byte("file")}}})
	_, attachErr := attach.Recv()
	for name, got := range map[string]struct {
		err  error
		want codes.Code
	}{"Write": {writeErr, codes.PermissionDenied}, "Read": {readErr, codes.PermissionDenied}, "Attach": {attachErr, codes.FailedPrecondition}} {
		if status.Code(got.err) != got.want {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	_, _ = up.rpc.Close(), up.conn.Close()
	s.hosts[0].End(nil)
	s.close()
	if out := s.out.String(); out != "" {
		t.Errorf("it has written %q", out)
	}
}

// lines passes on what is written, for a test that waits for it.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// TestCertificatesReplaced: when hosts have got certificates of another CA, one after the other,
// the connections between them are made anew with those, and nothing of what is under way on them
// is lost.
func TestCertificatesReplaced(t *testing.T) {
	before, after := pkitest.Authority(t), pkitest.Authority(t)
	s := newSite(t, 3, 1) // a chain
	of := make([]*identity.Identity, len(s.hosts))
	said := make(lines, 1000)
	in, typed := io.Pipe()
	s.stdin = in
	s.change = func(c *Config) {
		of[c.Self] = identityOf(t, before, before)
		c.Identity = of[c.Self]
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: c.Name(c.Self), Level: hclog.Info, Output: said})
	}
	s.begin()
	var all sync.WaitGroup
	stop := make(chan struct{})
	again := func(step func(i int) error) {
		all.Go(func() {
			for i := 0; ; i++ {
				if err := step(i); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	again(func(i int) error {
		want := fmt.Sprintf("2: %d?", i)
		b, err := s.hosts[0].Ask(t.Context(), 2, []byte(want[3:]))
		if err == nil && string(b) != want {
			err = fmt.Errorf("%q instead of %q", b, want)
		}
		return err
	})
	printed := 0
	again(func(i int) error {
		printed = i + 1
		_, err := fmt.Fprintln(s.hosts[2].Stdout(), i)
		return err
	})
	read := bufio.NewReader(s.hosts[2].Stdin())
	again(func(i int) error { // both ends of the input in one
		want := fmt.Sprintln("input", i)
		if _, err := io.WriteString(typed, want); err != nil {
			return err
		}
		got, err := read.ReadString('\n')
		if err == nil && got != want {
			err = fmt.Errorf("%q instead of %q", got, want)
		}
		return err
	})
	for _, i := range []int{2, 0, 1} {
		of[i].Replace(identityOf(t, after, after))
		s.hosts[i].Renew()
	}
	anew := make(map[string]bool)
	for len(anew) < 2 {
		line := <-said
		for _, host := range []string{"node1", "node2"} {
			if strings.Contains(line, host+": made the connection to a host anew") {
				anew[host] = true
			}
		}
		if strings.Contains(line, "[WARN]") {
			t.Error(line)
		}
	}
	close(stop)
	all.Wait()
	for i := 1; i < 3; i++ {
		c := s.hosts[i].up.link.conn.Conn.(*rpc.ReplaceableConn).Current().(*auth.Conn)
		if err := of[i].Judge(c.ConnectionState().PeerCertificates, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("host %d goes on with a connection by certificates of before: %v", i, err)
		}
	}
	// The CA of before is not asked any more: a host that has it alone gets no other connection.
	of[2].Replace(identityOf(t, before, before))
	for i, want := range map[int]error{1: nil, 2: ErrCertificate} {
		err := rpc.ErrReplacing
		for errors.Is(err, rpc.ErrReplacing) { // it may have been asked for twice
			err = s.hosts[i].up.again()
		}
		if !errors.Is(err, want) {
			t.Errorf("host %d: %v instead of %v", i, err, want)
		}
	}
	if _, err := s.hosts[0].Ask(t.Context(), 2, []byte("still there?")); err != nil {
		t.Error(err)
	}
	_ = typed.Close()
	s.hosts[0].End(nil)
	s.close()
	for i, line := range strings.Fields(s.out.String()) {
		if line != fmt.Sprint(i) {
			t.Fatalf("line %d of the output is %q", i, line)
		}
	}
	if n := len(strings.Fields(s.out.String())); n != printed {
		t.Errorf("%d of %d lines of output", n, printed)
	}
}
