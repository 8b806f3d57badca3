package dial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Errors of dials that ResultOf tells apart.
var (
	// ErrNoRoom is wrapped when the acceptor hung up before our greeting identified us.
	ErrNoRoom = errors.New("the peer had no room for a greeting")
	// ErrUncertain is wrapped when a connection broke in its greeting: the peer's node may
	// have given its end to the proc, or not.
	ErrUncertain = errors.New("lost in the greeting")
)

// ResultOf describes the outcome of a dial for a dial plan.
func ResultOf(err error) dynamic.DialResult {
	a := dynamic.DialResult{Err: err, Verdict: dynamic.VerdictOf(err)}
	if te, ok := errors.AsType[*transports.Error](err); ok {
		switch te.Code {
		case transports.CodeRefused:
			a.Failure |= dynamic.NotListening
		case transports.CodeResource:
			a.Failure |= dynamic.NoRoom
		case transports.CodeAddress, transports.CodeUnsupported, transports.CodeAuth:
			a.Failure |= dynamic.Impossible
		default: // it may be temporary
		}
		if te.Op == "dial" {
			a.Failure |= unconnected(te)
		}
	}
	if errors.Is(err, ErrNoRoom) {
		a.Failure |= dynamic.NoRoom
	}
	if errors.Is(err, ErrUncertain) {
		a.Failure |= dynamic.Uncertain
	}
	return a
}

// unconnected says how no connection was made.
func unconnected(err *transports.Error) dynamic.DialFailure {
	switch {
	case err.Code == transports.CodeUnreachable, err.Code == transports.CodeResource && !err.Retryable: // not retryable if a firewall refused it
		return dynamic.Unconnected | dynamic.OutOfReach
	case err.Code == transports.CodeTimeout:
		return dynamic.Unconnected | dynamic.TooSlow
	}
	return dynamic.Unconnected
}

// DialAndGreet makes a link by a candidate and greets the other node, by a greeting that token
// keys. It removes the session from hello for a link that cannot break while both its ends live.
func DialAndGreet(within context.Context, token dynamic.Token, t transports.Transport, hello *dynamic.Hello, w routes.Candidate) (link.Link, error) {
	ctx, cancel := context.WithTimeout(within, dynamic.DialLimit)
	defer cancel()
	l, err := t.Dial(ctx, transports.DialSpec{Address: w.Address, From: w.From})
	if err != nil {
		return nil, err
	}
	if !hello.Resumes && !hello.Lost && !breakable(l) {
		hello.ResumableID = dynamic.ResumableID{}
	}
	ctx, stop := context.WithTimeout(within, dynamic.GreetLimit)
	defer stop()
	g := dynamic.NewDialler(token, Nonce(), *hello)
	if err := Greet(ctx, l, g, g.Done); err != nil {
		_ = l.Close()
		failed := g.Failed(err, errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, link.ErrBroken)).Failure
		if failed&dynamic.NoRoom != 0 {
			err = fmt.Errorf("%w: %w", ErrNoRoom, err)
		}
		if failed&dynamic.Uncertain != 0 {
			err = fmt.Errorf("%w: %w", ErrUncertain, err)
		}
		return nil, err
	}
	if IsForJob(hello) {
		w.Transport.Plugin.CountLink()
	}
	return l, nil
}

// IsForJob reports whether a link is for the job, and not for an inspection or a measurement.
func IsForJob(h *dynamic.Hello) bool { return !h.Status && !h.Probe && !h.Lost }

// breakable reports whether a link can be lost although both its ends live, so that there is
// something to resume. A link that the two procs keep in memory cannot be lost.
func breakable(l link.Link) bool {
	return transports.DataPlane(planeOf(l)) != transports.PlanePeerSHM
}

type greeting interface {
	Output() []byte
	Input(b []byte) (consumed int, err error)
}

// Greet runs a greeting until enough returns true. It reads byte by byte, as the bytes after the
// greeting are for the proc.
func Greet(ctx context.Context, l link.Link, g greeting, enough func() bool) error {
	t, err := NewBlocking(ctx, l)
	if err != nil {
		return err
	}
	var b [1]byte
	for {
		if err := t.WriteAll(g.Output()); err != nil {
			return err
		}
		if enough() {
			return nil
		}
		if err := t.ReadFull(b[:]); err != nil {
			return err
		}
		if _, err := g.Input(b[:]); err != nil {
			_ = t.WriteAll(g.Output()) // the refusal; the peer may be gone
			return err
		}
	}
}

// Nonce returns a number that cannot be predicted.
func Nonce() (n dynamic.Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// NewSession returns the name of a new link that resumes.
func NewSession() (id dynamic.ResumableID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// Answer sends the verdict to a dialler. It returns an error if the verdict is a refusal.
func Answer(ctx context.Context, l link.Link, g *dynamic.Acceptor, verdict dynamic.Verdict) error {
	if verdict == dynamic.Accepted {
		g.Accept()
	} else {
		g.Refuse(verdict)
	}
	return Greet(ctx, l, g, g.Done)
}
