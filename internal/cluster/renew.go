package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/auth"
)

// The purposes of a connection: the first byte on it, before its ID.
const (
	prefaceNew  byte = 'N' // a new connection
	prefaceMove byte = 'M' // it replaces the connection with that ID
	prefaceGo   byte = 'G' // the dialler's answer: the connection is replaced from now on

	idSize = 16 // bytes; only the maker of a connection knows its ID
)

// The pause between attempts to renew a connection, and the number of failed ones before a warning.
const (
	renewPause = time.Second
	renewWarns = 10 // attempts
)

var errKept = errors.New("the connection goes on with the certificates by which it was made")

// Renew replaces the connections with other hosts by new ones, whose ends prove their identity by
// the current certificates. Data under way on them is not lost. Renew does not wait for that.
// Without certificates it does nothing.
func (h *Host) Renew() {
	if h.cfg.Identity == nil {
		return
	}
	if h.up != nil {
		h.up.wantsRenewal()
	}
	h.mu.Lock()
	below := slices.Collect(maps.Values(h.moving))
	h.mu.Unlock()
	for _, m := range below {
		h.begin(func() { _ = m.Ask() }) // in a goroutine, as the other end may not read; a broken connection is noticed elsewhere
	}
}

// wantsRenewal asks renews for another connection. It does not block.
func (a *above) wantsRenewal() {
	select {
	case a.renew <- struct{}{}:
	default: // it will do so after this moment
	}
}

// renews replaces the connection each time that wantsRenewal asks for it, until the connection
// ends.
func (a *above) renews() {
	for {
		select {
		case <-a.renew:
		case <-a.heard:
			return
		}
		for tries := 1; ; tries++ {
			err := a.again()
			if err == nil {
				a.h.log.Info("made the connection to a host anew, with the certificates as they are now", "other", a.h.cfg.Name(a.host))
				break
			}
			if tries == renewWarns {
				a.h.log.Warn("cannot make the connection to a host anew: have both hosts read their certificates, by impi-node reload; impi-node cert show tells what each has", "other", a.h.cfg.Name(a.host), "reason", fmt.Errorf("%w: %w", errKept, err))
			} else {
				a.h.log.Debug("cannot make the connection to a host anew yet", "other", a.h.cfg.Name(a.host), "reason", err)
			}
			select {
			case <-time.After(renewPause):
			case <-a.heard:
				return
			}
		}
	}
}

// again moves the link to a new connection.
func (a *above) again() error {
	h := a.h
	ctx, cancel := context.WithTimeout(h.ctx, greeting)
	defer cancel()
	m := a.link.conn.Conn.(*rpc.ReplaceableConn)
	if err := m.Reserve(); err != nil {
		return err
	}
	safe, err := a.ask(ctx)
	if err != nil {
		m.Cancel()
		return err
	}
	return m.Move(safe)
}

// ask makes a connection to which the parent agrees to move the link.
func (a *above) ask(ctx context.Context) (safe *auth.Conn, err error) {
	h := a.h
	if safe, err = h.cfg.greet(ctx, a.host, a.link.at, prefaceMove, a.link.id); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = safe.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var head [2]byte
	var text []byte
	if _, err = io.ReadFull(safe, head[:]); err == nil {
		text = make([]byte, head[1])
		_, err = io.ReadFull(safe, text)
	}
	switch {
	case err != nil:
	case safe.Refused != nil:
		err = h.cfg.notAccepted(h.cfg.Self, a.host, safe.Refused)
	case head[0] == 0:
		err = fmt.Errorf("%s refuses it: %s", h.cfg.Name(a.host), text)
	default:
		_, err = safe.Write([]byte{prefaceGo})
	}
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, safe.Close())
	}
	return safe, nil
}

// serve takes a connection whose other end has proved the secret, and closes it in the end.
func (p parent) serve(safe *auth.Conn) {
	var preface [1 + idSize]byte
	if _, err := io.ReadFull(safe, preface[:]); err != nil { // within the time for a greeting
		_ = safe.Close()
		return
	}
	id := [idSize]byte(preface[1:])
	switch preface[0] {
	case prefaceNew:
		p.serveNew(safe, id)
	case prefaceMove:
		if err := p.carryOn(safe, id); err != nil {
			p.h.log.Debug("a connection does not carry on another one", "peer", safe.RemoteAddr(), "reason", err)
			_ = safe.Close()
		}
	default:
		_ = safe.Close()
	}
}

func (p parent) serveNew(safe *auth.Conn, id [idSize]byte) {
	m := rpc.NewReplaceableConn(safe, nil)
	defer m.Close()
	p.h.mu.Lock()
	_, twice := p.h.moving[id]
	if !twice {
		p.h.moving[id] = m
	}
	p.h.mu.Unlock()
	if twice {
		return
	}
	v := &peer{refused: safe.Refused}
	p.h.proved.Put(rpc.NewConn(m, v))
	p.h.mu.Lock()
	delete(p.h.moving, id)
	p.h.mu.Unlock()
	if host := int(v.told.Load()); host > 0 {
		p.inform(host)
	}
}

// carryOn moves the link that has the ID to the connection safe.
func (p parent) carryOn(safe *auth.Conn, id [idSize]byte) error {
	p.h.mu.Lock()
	m := p.h.moving[id]
	p.h.mu.Unlock()
	err := safe.Refused
	switch {
	case err != nil:
		err = fmt.Errorf("it does not accept the certificate: %s", p.h.cfg.Identity.Explain(err))
	case m == nil:
		err = errors.New("the connection that it is to carry on is not there")
	default:
		err = m.Reserve()
	}
	if err != nil {
		text := err.Error()
		_, lost := safe.Write(append([]byte{0, byte(min(len(text), 255))}, text[:min(len(text), 255)]...))
		return errors.Join(err, lost)
	}
	var goes [1]byte
	if _, err = safe.Write([]byte{1, 0}); err == nil {
		_, err = io.ReadFull(safe, goes[:])
	}
	if err == nil && goes[0] != prefaceGo {
		err = errors.New("it says something else than that it does")
	}
	if err == nil {
		err = safe.SetDeadline(time.Time{}) // end the greeting's deadline
	}
	if err != nil {
		m.Cancel()
		return err
	}
	return m.Move(safe)
}
