// Package rpc runs gRPC between our own processes over existing connections: before the
// first byte of HTTP/2 the other end has proved who it is, and what it may cost
// before that is limited elsewhere. This package limits what it may cost afterwards.
package rpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	"github.com/openimpi/impi/plugins/sdk/support/failfast"
)

// Limits of every connection.
const (
	maxHeaders = 4 << 10          // bytes of a request's headers
	maxStreams = 16               // pending requests of a connection
	bufferSize = 4 << 10          // bytes for reading, and as many for writing
	pingEvery  = 10 * time.Second // of silence before a client's ping: gRPC's minimum
	pingLimit  = 5 * time.Second  // for the answer to a ping
)

// Conn is a connection for gRPC, with what its owner knows of the other end.
type Conn struct {
	net.Conn
	Peer    any
	OnClose func() // called once when it is closed, unless nil

	once sync.Once
	done chan struct{}
}

// NewConn takes over a connection.
func NewConn(nc net.Conn, about any) *Conn {
	return &Conn{Conn: nc, Peer: about, done: make(chan struct{})}
}

// Write writes, and closes the connection if that has failed for good: see failfast.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if failfast.Ends(err) {
		_ = c.Close() // err is the error to return
	}
	return n, err
}

// Close ends the connection. gRPC calls it when the other end has gone.
func (c *Conn) Close() error {
	c.once.Do(func() {
		close(c.done)
		if c.OnClose != nil {
			c.OnClose()
		}
	})
	return c.Conn.Close()
}

// Done returns a channel that is closed when the connection is.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Listener takes connections from Put.
type Listener struct {
	conns  chan *Conn
	closed chan struct{}
	once   sync.Once
}

// NewListener makes a listener for a single server.
func NewListener() *Listener {
	return &Listener{conns: make(chan *Conn), closed: make(chan struct{})}
}

// Put gives the server a connection and waits until it is closed.
func (l *Listener) Put(c *Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		_ = c.Close()
	}
	<-c.done
}

// Accept returns the next connection of Put.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Accepted connections stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a placeholder: the listener cannot be dialled.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "impi", Net: "unix"} }

// AuthType returns "impi": the other end has proved its identity before.
func (c *Conn) AuthType() string { return "impi" }

// PeerOf returns the data of the server's owner about the sender of a request: the Peer of its
// Conn.
func PeerOf(ctx context.Context) any {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(*Conn); ok {
			return c.Peer
		}
	}
	return nil
}

// proved are the credentials of connections whose ends have already proved who they are.
type proved struct{}

func (proved) ClientHandshake(_ context.Context, _ string, nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nc, nc.(*Conn), nil
}

func (proved) ServerHandshake(nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nc, nc.(*Conn), nil
}

func (proved) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "impi"}
}
func (p proved) Clone() credentials.TransportCredentials { return p }
func (proved) OverrideServerName(string) error           { return nil }

var errLost = errors.New("the connection is lost")

// Client returns a client that makes requests on one connection and never connects again. It is
// closed with the connection; pending requests fail.
func Client(c *Conn, maxAnswer int) (*grpc.ClientConn, error) {
	var dialled atomic.Bool
	return grpc.NewClient("passthrough:///impi",
		grpc.WithTransportCredentials(proved{}),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if dialled.Swap(true) {
				return nil, errLost
			}
			return c, nil
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingLimit, PermitWithoutStream: true}),
		grpc.WithReadBufferSize(bufferSize), grpc.WithWriteBufferSize(bufferSize),
		grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(),
	)
}

// Limits bound the resources that a peer with a proved identity may use.
type Limits struct {
	Request int           // bytes of the largest request
	Greet   time.Duration // for the client's first bytes of HTTP/2
	Silence time.Duration // time without an answer to a ping, after which a client counts as gone
	Idle    time.Duration // time without a request, after which a client is disconnected; 0: never
}

// NewServer makes a server for connections that are a *Conn.
func NewServer(l Limits, more ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(more,
		grpc.Creds(proved{}), grpc.ConnectionTimeout(l.Greet), grpc.MaxRecvMsgSize(l.Request),
		grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ReadBufferSize(bufferSize), grpc.WriteBufferSize(bufferSize),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: l.Idle, Time: l.Silence / 2, Timeout: l.Silence / 2}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingEvery / 2, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true))...)
}
