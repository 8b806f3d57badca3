package play

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// conn is a TCP connection, every byte of which is in the trace. Its methods end
// the case if what they wait for does not come in time.
type conn struct {
	t    *T
	name string // of the other end, and the connection's purpose
	tcp  *net.TCPConn

	pieces bool // data is sent byte by byte
}

func (t *T) newConn(name string, c *net.TCPConn) *conn {
	t.Cleanup(func() { _ = c.Close() })
	return &conn{t: t, name: name, tcp: c}
}

// dial connects to an address, from a local one if that is valid.
func (t *T) dial(name string, from netip.Addr, to netip.AddrPort) *conn {
	c, err := t.tryDial(from, to)
	if err != nil {
		t.Fatalf("%s: it cannot be connected to: %v", name, err)
	}
	t.trace.add("-> %s: connected to %v", name, to)
	return t.newConn(name, c)
}

func (t *T) tryDial(from netip.Addr, to netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: t.patience}
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

type listener struct {
	t    *T
	tcp  *net.TCPListener
	addr netip.AddrPort
}

func (t *T) listen(at netip.Addr) *listener {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
	t.must(err)
	t.Cleanup(func() { _ = l.Close() })
	return &listener{t, l, l.Addr().(*net.TCPAddr).AddrPort()}
}

func (l *listener) accept(what string) *conn {
	c := l.tryAccept(l.t.patience)
	if c == nil {
		l.t.Fatalf("no connection came within %v: %s", l.t.patience, what)
	}
	return l.take(c, what)
}

func (l *listener) take(c *net.TCPConn, what string) *conn {
	l.t.trace.add("<- %s: connected from %v", what, c.RemoteAddr())
	return l.t.newConn(what, c)
}

// tryAccept returns nil if nobody comes.
func (l *listener) tryAccept(d time.Duration) *net.TCPConn {
	l.t.must(l.tcp.SetDeadline(time.Now().Add(d)))
	c, err := l.tcp.AcceptTCP()
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		l.t.must(err)
	}
	if err != nil {
		return nil
	}
	return c
}

func (c *conn) send(what string, b []byte) {
	if err := c.trySend(what, b); err != nil {
		c.t.Fatalf("%s: %s cannot be sent: %v", c.name, what, err)
	}
}

func (c *conn) trySend(what string, b []byte) error {
	c.t.trace.add("-> %s: %s", c.name, what)
	if err := c.tcp.SetWriteDeadline(time.Now().Add(c.t.patience)); err != nil {
		return err
	}
	if c.pieces {
		return inPieces(c.tcp, b, 1)
	}
	_, err := c.tcp.Write(b)
	return err
}

func (c *conn) raw(b []byte) { c.send("bytes "+shortHex(b), b) }

func (c *conn) record(r record) { c.send(r.String(), r.bytes()) }

func (c *conn) tryRead(n int, d time.Duration) ([]byte, error) {
	b := make([]byte, n)
	if err := c.tcp.SetReadDeadline(time.Now().Add(d)); err != nil {
		return nil, err
	}
	got, err := io.ReadFull(c.tcp, b)
	return b[:got], err
}

func (c *conn) read(n int, what string) []byte {
	b, err := c.tryRead(n, c.t.patience)
	if err != nil {
		c.t.Fatalf("%s: %s, %d bytes: %s", c.name, what, n, howRead(b, err, c.t.patience))
	}
	return b
}

func howRead(got []byte, err error, d time.Duration) string {
	text := "got " + shortHex(got) + " and then "
	if len(got) == 0 {
		text = ""
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return text + "the connection was closed"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return text + "nothing came within " + d.String()
	}
	return text + err.Error()
}

const maxRecord = 16 << 20

func (c *conn) next(what string) record {
	r, err := c.tryNext(c.t.patience)
	if err != nil {
		c.t.Fatalf("%s: waiting for %s: %v", c.name, what, err)
	}
	return r
}

func (c *conn) tryNext(d time.Duration) (record, error) {
	h, err := c.tryRead(recordHeader, d)
	if err != nil {
		return record{}, errors.New(howRead(h, err, d))
	}
	r := record{cmd: command(binary.BigEndian.Uint32(h))}
	n := int32(binary.BigEndian.Uint32(h[4:]))
	if n < 0 || n > maxRecord {
		return r, errors.New("a record whose length is impossible: " + shortHex(h))
	}
	if r.data, err = c.tryRead(int(n), d); err != nil {
		return r, errors.New(r.cmd.String() + ": " + howRead(r.data, err, d))
	}
	c.t.trace.add("<- %s: %v", c.name, r)
	return r, nil
}

// expect reads a record that must have the command cmd and n bytes of data, or any number of them
// if n is negative.
func (c *conn) expect(cmd command, n int) record {
	r := c.next(cmd.String())
	if r.cmd != cmd || n >= 0 && len(r.data) != n {
		c.t.Fatalf("%s: %v where %v with %d bytes should be", c.name, r, cmd, n)
	}
	return r
}

// rest is what came before a connection ended.
type rest struct {
	data []byte
	err  error // nil: an orderly end
}

// closed waits for the end of the connection, orderly or not, and closes our side.
// What comes before it is given back.
func (c *conn) closed(why string) rest {
	defer func() { _ = c.tcp.Close() }()
	r := rest{}
	b := make([]byte, 4096)
	end := time.Now().Add(c.t.patience)
	for {
		c.t.must(c.tcp.SetReadDeadline(end))
		n, err := c.tcp.Read(b)
		r.data = append(r.data, b[:n]...)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.t.Fatalf("%s: the connection is still open after %v: %s", c.name, c.t.patience, why)
		case errors.Is(err, io.EOF):
			c.t.trace.add("<- %s: %sclosed", c.name, before(r.data))
			return r
		case err != nil:
			c.t.trace.add("<- %s: %sclosed (%v)", c.name, before(r.data), err)
			r.err = err
			return r
		case len(r.data) > maxRecord:
			c.t.Fatalf("%s: it sends without end: %s", c.name, why)
		}
	}
}

func before(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return shortHex(b) + ", then "
}

// silent ends the case if something has come, as nothing may.
func (c *conn) silent(why string) {
	b, err := c.tryRead(1, glance)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
	case err == nil:
		c.said(b, why)
	default:
		c.t.Fatalf("%s: %s: %s", c.name, howRead(b, err, glance), why)
	}
}

// said ends the case because b has come, and shows it with what follows.
func (c *conn) said(b []byte, why string) {
	if len(b) < recordHeader {
		more, _ := c.tryRead(recordHeader-len(b), glance)
		b = append(b, more...)
	}
	c.t.Fatalf("%s: %s came: %s", c.name, shortHex(b), why)
}

func (c *conn) close() {
	c.t.trace.add("-> %s: closed", c.name)
	_ = c.tcp.Close()
}

func (c *conn) reset() {
	c.t.trace.add("-> %s: reset", c.name)
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}

func (c *conn) local() netip.AddrPort  { return c.tcp.LocalAddr().(*net.TCPAddr).AddrPort() }
func (c *conn) remote() netip.AddrPort { return c.tcp.RemoteAddr().(*net.TCPAddr).AddrPort() }
