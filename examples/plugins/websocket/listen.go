package main

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

var noDeadline time.Time

// listener is an HTTP server that accepts WebSockets at one path.
type listener struct {
	set     settings
	address string
	server  *http.Server
	arrived chan link.Link
	done    chan struct{}
	once    sync.Once
}

func listen(ctx context.Context, s settings, at transports.ListenSpec) (transports.Listener, error) {
	ip, err := netip.ParseAddr(at.Host)
	if err != nil {
		return nil, socket.BadAddress(name, "listen", shown(at.Host), "it should be an IP address")
	}
	where := netip.AddrPortFrom(ip, uint16(at.Port)).String()
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", where)
	if err != nil {
		return nil, socket.Failure(name, "listen", where, err)
	}
	l := &listener{set: s, address: s.advertise, arrived: make(chan link.Link), done: make(chan struct{})}
	scheme := "ws"
	if s.id != nil {
		scheme, ln = "wss", tls.NewListener(ln, s.id.Server(http1))
	}
	if l.address == "" {
		l.address = (&url.URL{Scheme: scheme, Host: ln.Addr().String(), Path: s.path}).String()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+s.path, l.take)
	l.server = &http.Server{
		Handler: mux, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/1.1 only
		ReadHeaderTimeout: s.timeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // errors of others
	}
	go func() {
		if err := l.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			_ = l.Close() // it does not accept any more
		}
	}()
	return l, nil
}

// take makes a link from a request and waits until it is accepted.
func (l *listener) take(w http.ResponseWriter, r *http.Request) {
	if l.set.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+l.set.token)) != 1 {
		http.Error(w, "another token, please", http.StatusUnauthorized)
		return
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{protocol}, CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true, // no browser comes here
	})
	if err != nil {
		return // the answer has been given
	}
	x := linkOf(c)
	select {
	case l.arrived <- x:
	case <-l.done:
		_ = c.CloseNow() // the listener is closed
		_ = x.Close()
	}
}

// Accept waits for the next link and returns it.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	select {
	case <-l.done:
		return nil, link.ErrClosed
	default:
	}
	select {
	case x := <-l.arrived:
		return x, nil
	case <-l.done:
		return nil, link.ErrClosed
	case <-ctx.Done():
		e := socket.Failure(name, "accept", l.address, ctx.Err())
		e.Retryable = true
		return nil, e
	}
}

// Address returns the URL to dial.
func (l *listener) Address() string { return l.address }

// Close stops accepting. WebSockets that were accepted do not belong to the server any
// more.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		_ = l.server.Close() // closes only what is closed already
	})
	return nil
}
