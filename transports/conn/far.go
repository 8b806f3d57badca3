package conn

import (
	"net"

	"github.com/openimpi/impi/transports"
)

// Break ends a connection on which bytes were lost, so that its peer sees a failure
// and not an end, where the connection has a way to say so: a method Break, a
// connection below it (TLS, whose peer misses the closing alert then), or the reset
// of TCP.
func Break(c net.Conn) {
	switch x := c.(type) {
	case interface{ Break() }:
		x.Break()
	case interface{ NetConn() net.Conn }:
		Break(x.NetConn())
	case interface{ SetLinger(int) error }:
		_ = x.SetLinger(0) // it is as good as closed
	}
	_ = c.Close()
}

var _ transports.Piped = (*Link)(nil)
