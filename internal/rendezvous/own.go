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
	"github.com/openimpi/impi/transports/identity"
)

// Own says how a server of ours is spoken to: by TLS, inside which both sides prove the
// key, and over further connections if one is cut.
type Own struct {
	// Identity, if any, is our certificate, and the server must have one of the same CA. It need
	// not if Unverified is set: then that is a warning.
	Identity   *identity.Identity
	Unverified bool

	// NeedTLS keeps plain IMPI from being tried where the server does not speak TLS. It is
	// not tried with a key either where the server says nothing at all.
	NeedTLS bool

	// Resume is how long to try to make a connection again that was cut; 0: not at all.
	Resume time.Duration
}

const (
	tlsHandshake = 0x16 // how a record of TLS begins in which a server answers

	greetLimit = 10 * time.Second // for a server to answer
	// deafs is how many connections in a row must end without a word before a server is
	// taken for one that does not speak TLS: one may have been too busy.
	deafs = 3
)

// How a connection did not become one of ours.
var (
	// errForeign means that something else than TLS was answered.
	errForeign = errors.New("the server does not speak TLS as ours does")
	// errDeaf means that nothing was answered.
	errDeaf = errors.New("the server ended the connection without a word")
	// errBrokeOff means that TLS began, and something else came then: the server had no patience.
	errBrokeOff = errors.New("the server broke TLS off")
)

// caller is the client's side of the beginning with a server of ours.
type caller struct {
	own  *Own
	auth startup.Auth
	log  hclog.Logger

	session resume.Session
	secret  []byte // of the session; nil before its first connection
	kept    time.Duration
	proven  bool // the server has shown the key
}

func newCaller(own *Own, auth startup.Auth, log hclog.Logger) *caller {
	c := &caller{own: own, auth: auth, log: log}
	_, _ = rand.Read(c.session[:]) // never fails
	return c
}

// greet makes nc, which it owns, a connection that the server knows for ours.
func (c *caller) greet(ctx context.Context, nc net.Conn) (_ *tls.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	heard := &hearing{Conn: nc}
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			nc.Close()
		}
	}()
	if _, err := nc.Write(preface[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", errDeaf, err)
	}
	t := tls.Client(heard, c.config())
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, c.judge(err, heard)
	}
	return t, c.converse(t)
}

// config is that of TLS: any certificate does where there is none to show, as the key, or
// the session's secret, is the proof then.
func (c *caller) config() *tls.Config {
	if c.own.Identity == nil {
		return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, InsecureSkipVerify: true}
	}
	t := c.own.Identity.Client(protocol)
	if verify := t.VerifyConnection; c.own.Unverified {
		t.VerifyConnection = func(s tls.ConnectionState) error {
			if err := verify(s); err != nil {
				c.log.Warn("the server's certificate is not accepted, and require_tls = false has us go on", "reason", c.own.Identity.Explain(err))
			}
			return nil
		}
	}
	return t
}

// judge says what a handshake that failed means.
func (c *caller) judge(err error, heard *hearing) error {
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
		return fmt.Errorf("%w: %w", errDeaf, err)
	}
	return c.explain(err)
}

// explain says what TLS found wrong, with what to do.
func (c *caller) explain(err error) error {
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
		if !madeUp(err) {
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

// madeUp reports whether it was a server without a certificate of its own that was not
// accepted.
func madeUp(err error) bool {
	return strings.Contains(err.Error(), `certificate of "impi server"`)
}

// converse says hello and judges the answer.
func (c *caller) converse(t *tls.Conn) error {
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
		return c.explain(rerr) // what the server said is better than that it did not listen
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

// credentials are what IMPI's AUTH may use then: the key goes to a server only that has
// shown that it has it.
func (c *caller) credentials() startup.Auth {
	a := c.auth
	if !c.proven {
		a.HasKey, a.Key = false, 0
	}
	return a
}

// hearing notes how the other side begins.
type hearing struct {
	net.Conn
	first [8 + 512]byte
	n     int
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.n += copy(h.first[min(h.n, len(h.first)):], b[:n])
	return n, err
}

// NetConn is the connection below, as of crypto/tls.
func (h *hearing) NetConn() net.Conn { return h.Conn }

// fail returns the text of a FAIL, of which more may be to come.
func (h *hearing) fail() (text string, ok bool) {
	if h.n < headSize {
		return "", false
	}
	_ = h.Conn.SetReadDeadline(time.Now().Add(linger))
	rest := strings.NewReader(string(h.first[headSize:h.n]))
	return readFail(h.first[:headSize], &both{rest, h.Conn})
}

// both reads one after the other.
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

// busy reports whether a server that has refused may not do so in a moment.
func (r *refusal) busy() bool { return strings.Contains(r.text, startup.ErrBusy.Error()) }

// foreign reports whether it was the beginning that the server did not understand: it is
// older than ours.
func (r *refusal) foreign() bool { return strings.HasPrefix(r.text, startup.ErrProtocol.Error()) }

// passes reports whether a connection may become one of ours if it is made again.
func passes(err error) bool {
	var r *refusal
	if errors.As(err, &r) {
		return r.busy()
	}
	return errors.Is(err, errDeaf) || errors.Is(err, errBrokeOff) || mayPass(err) || inOrder(err) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}
