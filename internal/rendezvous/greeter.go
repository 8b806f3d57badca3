package rendezvous

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// MaxResume is the default maximum time for which a server keeps the session of a client that has
// lost its connection.
const MaxResume = 5 * time.Minute

// greeter is the server's side of the handshake with clients of ours (docs/wire.md).
type greeter struct {
	auth startup.Auth
	tls  func() *tls.Config // for the next connection: certificates may be replaced
	id   *identity.Identity // nil: no certificates
	most time.Duration      // longest time for which a session is kept without a connection
	log  hclog.Logger

	mu       sync.Mutex
	sessions map[resume.ResumableID]*session
}

type session struct {
	conn   startup.ConnID
	l      *resumableConn
	secret []byte
}

// newGreeter makes a greeter. Without certificates it makes one for itself; the key is the
// proof then.
func newGreeter(cfg *Config) (*greeter, error) {
	g := &greeter{
		auth: cfg.Server.Auth, id: cfg.Identity, most: cfg.MaxResume, log: cfg.Logger,
		sessions: make(map[resume.ResumableID]*session),
	}
	g.most = cmp.Or(g.most, MaxResume)
	if g.id != nil {
		g.tls = func() *tls.Config {
			c := g.id.Server(protocol)
			if cfg.Unverified { // without a verified certificate the key is the proof
				c.ClientAuth, c.VerifyConnection = tls.NoClientCert, nil
			}
			return c
		}
		return g, nil
	}
	c, err := pki.SelfSigned("impi server")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", startup.ErrConfig, err)
	}
	own := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, SessionTicketsDisabled: true, Certificates: []tls.Certificate{c},
	}
	g.tls = func() *tls.Config { return own }
	return g, nil
}

// greeted is the connection of a client of ours that has sent its hello.
type greeted struct {
	*tls.Conn
	hello   hello
	binding []byte
}

func (x *greeted) how() string {
	if certs := x.ConnectionState().PeerCertificates; len(certs) > 0 && len(certs[0].DNSNames) > 0 {
		return "TLS, certificate of " + certs[0].DNSNames[0]
	}
	return "TLS"
}

var errNoSession = errors.New("the server does not know the session: the client had finished, or the server no longer waited for it")

// receive reads the preface and the hello, and checks the key. The caller has set nc's
// deadline.
func (g *greeter) receive(nc net.Conn) (*greeted, error) {
	var first [prefaceSize]byte
	if _, err := io.ReadFull(nc, first[:]); err != nil {
		return nil, err
	}
	if first != preface {
		return nil, fmt.Errorf("%w: %w: %x where AUTH should be", startup.ErrProtocol, errPreface, first)
	}
	t := tls.Server(nc, g.tls())
	if err := t.HandshakeContext(context.Background()); err != nil {
		if why := g.explain(err); why != "" {
			return nil, fmt.Errorf("%w: %s", startup.ErrAuth, why)
		}
		return nil, fmt.Errorf("%w: %w", startup.ErrProtocol, err)
	}
	x := &greeted{Conn: t}
	state := t.ConnectionState()
	var err error
	if x.binding, err = state.ExportKeyingMaterial(bindingLabel, nil, 32); err != nil {
		return x, fmt.Errorf("%w: %w", startup.ErrProtocol, err)
	}
	if x.hello, err = readHello(t); err != nil {
		return x, fmt.Errorf("%w: %w", startup.ErrProtocol, err)
	}
	if h := &x.hello; h.flags&flagKey != 0 && g.auth.HasKey && !h.key.is(keyProof(g.auth.Key, "client", x.binding, h)) {
		return x, errWrongKey
	}
	return x, nil
}

var errWrongKey = fmt.Errorf("%w: wrong key", startup.ErrAuth)

func (g *greeter) explain(err error) string {
	if g.id == nil {
		return ""
	}
	return g.id.Explain(err)
}

// answer answers a hello, and says for how long the session is kept.
func (g *greeter) answer(x *greeted, secret []byte, limit time.Duration) error {
	a := answer{limit: limit}
	if g.auth.HasKey && x.hello.flags&flagKey != 0 {
		a.flags |= flagKey
		a.key = keyProof(g.auth.Key, "server", x.binding, &x.hello)
	}
	if secret != nil {
		a.secret = secretProof(secret, "server", x.binding, &x.hello)
	}
	_, err := x.Write(a.append(nil))
	return err
}

// admit answers a new client, and returns the connection for startup, which is resumable if
// the client asks for it.
func (g *greeter) admit(x *greeted, id startup.ConnID) (net.Conn, error) {
	limit := min(x.hello.limit, max(g.most, 0))
	if limit == 0 {
		return x.Conn, g.answer(x, nil, 0)
	}
	state := x.ConnectionState()
	secret, err := state.ExportKeyingMaterial(secretLabel, x.hello.session[:], 32)
	if err != nil {
		return nil, err
	}
	s := &session{conn: id, secret: secret, l: newResumableConn(x.hello.session, false, x.Conn)}
	w := &patience{l: s.l, limit: limit, log: g.log.With("peer", x.RemoteAddr())}
	s.l.lost, s.l.found, s.l.stop = w.lost, w.found, w.stop
	if !g.add(x.hello.session, s) {
		return nil, fmt.Errorf("%w: the session is another client's", startup.ErrProtocol)
	}
	// From now on the client may lose the connection and resume the session.
	if err := g.answer(x, nil, limit); err != nil {
		g.end(id)
		return nil, err
	}
	h, err := readPosition(x)
	if err == nil {
		err = s.l.arrive(x.Conn, h)
	}
	if err != nil {
		x.NetConn().Close()
		s.l.orphan(err)
	}
	return s.l, nil
}

func (g *greeter) add(name resume.ResumableID, s *session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[name] != nil {
		return false
	}
	g.sessions[name] = s
	return true
}

// readPosition reads the HELLO of core/resume, which says from where the client continues.
func readPosition(r io.Reader) (resume.Hello, error) {
	var b [resume.HelloSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return resume.Hello{}, err
	}
	return resume.ParseHello(b[:])
}

// known returns the session that a client asks for, if the client has proved that it is its
// own.
func (g *greeter) known(x *greeted) (*session, error) {
	g.mu.Lock()
	s := g.sessions[x.hello.session]
	g.mu.Unlock()
	switch {
	case s == nil:
		return nil, errNoSession
	case g.auth.HasKey && x.hello.flags&flagKey == 0 && !g.auth.None:
		return nil, fmt.Errorf("%w: no proof of the key", startup.ErrAuth)
	case !x.hello.secret.is(secretProof(s.secret, "client", x.binding, &x.hello)):
		return nil, fmt.Errorf("%w: the session is another client's", startup.ErrAuth)
	}
	return s, nil
}

// goOn resumes a session over the connection of x, and owns that connection.
func (g *greeter) goOn(x *greeted, s *session) error {
	err := g.answer(x, s.secret, x.hello.limit)
	var h resume.Hello
	if err == nil {
		h, err = readPosition(x)
	}
	if err == nil {
		_ = x.SetDeadline(time.Time{})
		err = s.l.arrive(x.Conn, h)
	}
	if err != nil {
		x.NetConn().Close()
	}
	return err
}

func (g *greeter) end(id startup.ConnID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, s := range g.sessions {
		if s.conn == id {
			delete(g.sessions, name)
		}
	}
}

func (g *greeter) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions) > 0
}

// patience gives up a session whose client does not come back.
type patience struct {
	l     *resumableConn
	limit time.Duration
	log   hclog.Logger
	timer *time.Timer
	again bool // the first connection has been made
}

func (p *patience) lost(epoch uint64, why error) {
	limit := p.limit
	if inOrder(why) {
		limit = min(limit, goneAfter)
	}
	p.log.Warn("the connection of a client is lost", "waiting", limit, "reason", why)
	p.timer = time.AfterFunc(limit, func() { p.l.fail(epoch, notAgain(limit, why)) })
}

func (p *patience) found() {
	p.stop()
	if p.again {
		p.log.Info("the connection of a client is resumed")
	}
	p.again = true
}

func (p *patience) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
