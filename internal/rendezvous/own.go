package rendezvous

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// OwnServer defines how to talk to a server of ours: over TLS, inside which both sides prove the
// key, and over further connections if one is lost.
type OwnServer struct {
	// Identity is this site's certificate, or nil. With one the server must have a
	// certificate of the same CA; if Unverified is set a failure to verify that is only a
	// warning.
	Identity   *identity.Identity
	Unverified bool

	// NeedTLS forbids plain IMPI with a server that does not speak TLS. Without NeedTLS
	// plain IMPI is still not tried if there is a key and the server closes connections
	// without an answer.
	NeedTLS bool

	// Resume is the maximum time to try to replace a lost connection; 0: not at all.
	Resume time.Duration
}

const (
	tlsHandshake = 0x16 // the first byte of a TLS record, with which a server answers

	greetLimit = 10 * time.Second // for a server to answer
	// maxUnanswered is how many connections in a row the server must close without an
	// answer before it is taken for one that does not speak TLS: a single one may have been
	// closed because the server was busy.
	maxUnanswered = 3
)

// The ways in which the handshake fails.
var (
	errForeign  = errors.New("the server does not speak TLS as ours does")
	errNoAnswer = errors.New("the server closed the connection without an answer")
	// errBrokeOff means that TLS began and the server closed the connection, probably since
	// it took too long.
	errBrokeOff = errors.New("the server closed the connection during the TLS handshake")
)

// ownClient is the client's side of the handshake with a server of ours (docs/wire.md).
type ownClient struct {
	own  *OwnServer
	auth startup.Auth
	log  hclog.Logger

	session resume.ResumableID
	secret  []byte // of the session; nil before its first connection
	kept    time.Duration
	proven  bool // the server has proved the key
}

func newOwnClient(own *OwnServer, auth startup.Auth, log hclog.Logger) *ownClient {
	c := &ownClient{own: own, auth: auth, log: log}
	_, _ = rand.Read(c.session[:]) // never fails
	return c
}

// greet goes through the handshake on nc, which it owns.
func (c *ownClient) greet(ctx context.Context, nc net.Conn) (_ *tls.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	heard := &recorder{Conn: nc}
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			nc.Close()
		}
	}()
	if _, err := nc.Write(preface[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	t := tls.Client(heard, c.config())
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, c.judge(err, heard)
	}
	return t, c.converse(t)
}

// config returns the TLS settings. Without a certificate of its own the client accepts any:
// the key, or the session's secret, is the proof then.
func (c *ownClient) config() *tls.Config {
	if c.own.Identity == nil {
		return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, InsecureSkipVerify: true}
	}
	t := c.own.Identity.Client(protocol)
	if verify := t.VerifyConnection; c.own.Unverified {
		t.VerifyConnection = func(s tls.ConnectionState) error {
			if err := verify(s); err != nil {
				c.log.Warn("the server's certificate is not accepted; going on, as require_tls = false", "reason", c.own.Identity.Explain(err))
			}
			return nil
		}
	}
	return t
}

func (c *ownClient) judge(err error, heard *recorder) error {
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain) && heard.first[0] == tlsHandshake:
		return fmt.Errorf("%w: %w", errBrokeOff, err)
	case errors.As(err, &plain):
		if text, ok := heard.fail(); ok {
			return &refusal{text}
		}
		return fmt.Errorf("%w: it answered %q", errForeign, heard.first[:min(heard.n, 16)])
	case heard.n == 0:
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return c.explain(err)
}

func (c *ownClient) explain(err error) error {
	var remote *net.OpError
	var plain tls.RecordHeaderError
	alert := errors.As(err, &remote) && remote.Op == "remote error"
	why := ""
	if c.own.Identity != nil {
		why = c.own.Identity.Explain(err)
	}
	switch {
	case errors.As(err, &plain):
		return fmt.Errorf("%w: %w", errBrokeOff, err)
	case strings.Contains(err.Error(), "certificate required"):
		return fmt.Errorf("%w: the server wants a certificate: give this site one, with cert, key and ca in the config of its transport quic or tcp", startup.ErrAuth)
	case errors.Is(err, identity.ErrPeer):
		if !selfMade(err) {
			return fmt.Errorf("%w: the server is not accepted: %s; require_tls = false beside server, or in embedded_server, has this site join all the same", startup.ErrAuth, why)
		}
		return fmt.Errorf("%w: the server has no certificate, and this site has: start impi-server with -cert, -key and -ca, or write require_tls = false beside server", startup.ErrAuth)
	case why != "":
		return fmt.Errorf("%w: the server refused us: %s", startup.ErrAuth, why)
	case alert:
		return fmt.Errorf("%w: the server refused us: %w", startup.ErrAuth, err)
	}
	return err
}

// selfMade reports whether the certificate that was rejected is one that a server without
// certificates makes for itself.
func selfMade(err error) bool {
	return strings.Contains(err.Error(), `certificate of "impi server"`)
}

func (c *ownClient) converse(t *tls.Conn) error {
	state := t.ConnectionState()
	binding, err := state.ExportKeyingMaterial(bindingLabel, nil, 32)
	if err != nil {
		return err
	}
	h := hello{session: c.session, limit: c.own.Resume}
	if c.auth.HasKey {
		h.flags |= flagKey
	}
	if c.secret != nil {
		h.flags |= flagResume
		h.secret = secretProof(c.secret, "client", binding, &h)
	}
	if c.auth.HasKey {
		h.key = keyProof(c.auth.Key, "client", binding, &h)
	}
	_, err = t.Write(h.append(nil))
	a, rerr := readAnswer(t)
	switch {
	case rerr != nil:
		return c.explain(rerr) // the server's answer is more useful than an error of Write
	case err != nil:
		return err
	case a.flags&flagKey != 0 && !(c.auth.HasKey && a.key.is(keyProof(c.auth.Key, "server", binding, &h))):
		return fmt.Errorf("%w: the server does not have the key", startup.ErrAuth)
	case a.flags&flagKey == 0 && c.auth.HasKey && !c.auth.None:
		return fmt.Errorf("%w: the server has no key: the site and the server must have the same auth block", startup.ErrAuth)
	case c.secret != nil && !a.secret.is(secretProof(c.secret, "server", binding, &h)):
		return fmt.Errorf("%w: the server does not know the session's secret", startup.ErrAuth)
	case c.secret != nil:
		return nil
	}
	c.proven = a.flags&flagKey != 0
	if c.kept = min(a.limit, c.own.Resume); c.kept > 0 {
		c.secret, err = state.ExportKeyingMaterial(secretLabel, c.session[:], 32)
	}
	return err
}

// credentials returns what may be used in IMPI's AUTH: the key only if the server has
// proved that it has it.
func (c *ownClient) credentials() startup.Auth {
	a := c.auth
	if !c.proven {
		a.HasKey, a.Key = false, 0
	}
	return a
}

// recorder is a connection that records the first bytes it receives.
type recorder struct {
	net.Conn
	first [8 + 512]byte
	n     int
}

func (h *recorder) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.n += copy(h.first[min(h.n, len(h.first)):], b[:n])
	return n, err
}

// NetConn returns the connection below, as tls.Conn does.
func (h *recorder) NetConn() net.Conn { return h.Conn }

// fail returns the text of a FAIL, the rest of which may still be to come.
func (h *recorder) fail() (text string, ok bool) {
	if h.n < headSize {
		return "", false
	}
	_ = h.Conn.SetReadDeadline(time.Now().Add(linger))
	rest := strings.NewReader(string(h.first[headSize:h.n]))
	return readFail(h.first[:headSize], &both{rest, h.Conn})
}

type both struct {
	head *strings.Reader
	tail net.Conn
}

func (b *both) Read(p []byte) (int, error) {
	if b.head.Len() > 0 {
		return b.head.Read(p)
	}
	return b.tail.Read(p)
}

func (r *refusal) busy() bool { return strings.Contains(r.text, startup.ErrBusy.Error()) }

// foreign reports whether the server did not understand the preface, because it is of an
// older version.
func (r *refusal) foreign() bool { return strings.HasPrefix(r.text, startup.ErrProtocol.Error()) }

// passes reports whether another connection may succeed where this one failed with err.
func passes(err error) bool {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.busy()
	}
	return errors.Is(err, errNoAnswer) || errors.Is(err, errBrokeOff) || mayPass(err) || inOrder(err) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}
