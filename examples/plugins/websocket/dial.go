package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/coder/websocket"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// protocol is the WebSocket subprotocol: frames of package conn in binary messages.
const protocol = "impi.1"

func dial(ctx context.Context, s settings, to transports.DialSpec) (link.Link, error) {
	u, err := parseAddress(to.Address, s.names)
	if err != nil {
		return nil, socket.BadAddress(name, "dial", shown(to.Address), err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	d := &dialler{settings: s}
	if to.From != "" {
		d.from = &net.TCPAddr{IP: net.ParseIP(to.From)}
	}
	header := http.Header{}
	if s.token != "" {
		header.Set("Authorization", "Bearer "+s.token)
	}
	c, answer, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: d.roundTripper(), CheckRedirect: noRedirects},
		HTTPHeader: header, Subprotocols: []string{protocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, s.dialFailure(ctx, to.Address, answer, err)
	}
	if c.Subprotocol() != protocol {
		_ = c.CloseNow() // its bytes are not for us
		return nil, failure("dial", to.Address, transports.CodeProtocol, "what answers there does not speak "+protocol)
	}
	return linkOf(c), nil
}

// http1 is the ALPN name of HTTP/1.1, with which a WebSocket begins.
const http1 = "http/1.1"

// roundTripper makes the HTTP request of one WebSocket. With an identity, both sides of
// a wss URL prove that they are of the job; without, the system's authorities say whom
// a gateway's certificate is good for.
func (d *dialler) roundTripper() *http.Transport {
	t := &http.Transport{DialContext: d.dial, DisableKeepAlives: true, TLSHandshakeTimeout: d.timeout}
	if d.id != nil {
		t.TLSClientConfig = d.id.Client(http1)
	}
	return t
}

func linkOf(c *websocket.Conn) link.Link { return conn.New(streamOf(c)) }

// streamOf makes a stream of a WebSocket, which has no half-close: Framed gives it one.
func streamOf(c *websocket.Conn) transports.Conn {
	return conn.Framed(careful{websocket.NetConn(context.Background(), c, websocket.MessageBinary)})
}

// careful wraps a WebSocket's connection for two things that links require.
type careful struct{ net.Conn }

// Read never returns bytes together with an error. For a frame that was cut off the library returns
// the bytes that have come without unmasking them, so they are not the bytes that the peer has
// sent.
func (c careful) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Close closes in the background: waiting for the peer's answer may take seconds, and links must
// not block. Bytes that were written are still sent.
func (c careful) Close() error {
	go func() { _ = c.Conn.Close() }() // an error cannot be reported
	return nil
}

var errRedirect = errors.New("it wants to be asked elsewhere")

func noRedirects(*http.Request, []*http.Request) error { return errRedirect }

// shown returns an address for an error message: it may be anything, of any length.
func shown(address string) string { return fmt.Sprintf("%.100q", address) }

func failure(op, address string, code transports.Code, reason string) *transports.Error {
	return &transports.Error{Transport: name, Op: op, Address: address, Code: code, Reason: reason,
		Retryable: code == transports.CodeRefused || code == transports.CodeUnreachable}
}

func (s *settings) dialFailure(ctx context.Context, address string, answer *http.Response, err error) error {
	var refused *proxyError
	if s.id != nil {
		if why := s.id.Explain(err); why != "" {
			return failure("dial", address, transports.CodeAuth, why)
		}
	}
	switch {
	case ctx.Err() != nil:
		return socket.Failure(name, "dial", address, ctx.Err())
	case errors.As(err, &refused):
		return failure("dial", address, refused.code, refused.Error())
	case answer != nil && answer.StatusCode == http.StatusUnauthorized:
		return failure("dial", address, transports.CodeAuth, "the peer wants another token")
	case answer != nil:
		return failure("dial", address, transports.CodeRefused, "the answer is "+answer.Status)
	}
	e := socket.Failure(name, "dial", address, err)
	if e.Code == transports.CodeInternal {
		e.Code, e.Retryable = transports.CodeUnreachable, true
	}
	return e
}

type dialler struct {
	settings
	from *net.TCPAddr
}

func (d *dialler) proxyFor(address string) (*url.URL, error) {
	switch d.proxy {
	case "":
		return nil, nil
	case "environment":
		return http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "http", Host: address}})
	default:
		return url.Parse(d.proxy)
	}
}

func (d *dialler) dial(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{}
	if d.from != nil {
		plain.LocalAddr = d.from
	}
	proxy, err := d.proxyFor(address)
	if err != nil || proxy == nil {
		return plain.DialContext(ctx, network, address)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, proxy.Host)
	if err != nil {
		return nil, &proxyError{transports.CodeUnreachable, fmt.Sprintf("the proxy %s: %v", proxy.Host, err)}
	}
	tunnel, err := connect(ctx, c, proxy, address)
	if err != nil {
		_ = c.Close() // it did not become a tunnel
		return nil, err
	}
	return tunnel, nil
}

type proxyError struct {
	code   transports.Code
	reason string
}

func (e *proxyError) Error() string { return e.reason }

func connect(ctx context.Context, c net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	if at, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(at); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(c); err != nil {
		return nil, &proxyError{transports.CodeUnreachable, fmt.Sprintf("the proxy %s: %v", proxy.Host, err)}
	}
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, req)
	switch {
	case err != nil:
		return nil, &proxyError{transports.CodeUnreachable, fmt.Sprintf("the proxy %s: %v", proxy.Host, err)}
	case answer.StatusCode == http.StatusProxyAuthRequired:
		return nil, &proxyError{transports.CodeAuth, fmt.Sprintf("the proxy %s wants a user and a password: %s", proxy.Host, answer.Status)}
	case answer.StatusCode != http.StatusOK:
		return nil, &proxyError{transports.CodeRefused, fmt.Sprintf("the proxy %s answers %s", proxy.Host, answer.Status)}
	case r.Buffered() > 0:
		return nil, &proxyError{transports.CodeProtocol, fmt.Sprintf("the proxy %s talks before it is asked", proxy.Host)}
	}
	return c, c.SetDeadline(noDeadline)
}
