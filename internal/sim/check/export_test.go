package check

import "fmt"

// Line describes the packet that begins with header in one line, its procs by
// host id and pid. Any bytes will do.
func Line(header []byte) string {
	if len(header) < HeaderSize {
		return fmt.Sprintf("%d bytes of a packet's header", len(header))
	}
	p := decode(header)
	if p.typ == pkFini {
		return typeName(p.typ)
	}
	return fmt.Sprintf("%s->%s %s%s", who(header[offSrc:]), who(header[offDest:]), typeName(p.typ), p.fields())
}

// Line describes the packet that begins with header in one line, its procs by
// their ranks. Any bytes will do.
func (c *Checker) Line(header []byte) string {
	if len(header) < HeaderSize {
		return Line(header)
	}
	src, ok := c.byID[[IdentitySize]byte(header[offSrc:])]
	dest, also := c.byID[[IdentitySize]byte(header[offDest:])]
	if !ok || !also {
		return Line(header)
	}
	p := decode(header)
	return fmt.Sprintf("%d->%d %s%s", src, dest, typeName(p.typ), p.fields())
}

// Held returns the bytes of packets that the agent of a host has read and not
// written, those that it has thrown away included.
func (c *Checker) Held(host int) int64 { return c.hosts[host].held }

// ServerEnd is the endpoint of the server.
func ServerEnd() Endpoint { return Endpoint{KindServer, 0} }

// ClientEnd is the client side of a connection to the server.
func ClientEnd(client int) Endpoint { return Endpoint{KindClient, client} }
