package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
)

// Option changes what a trace makes of a link's bytes.
type Option func(*options)

type options struct {
	dialect        wire.Dialect
	sent, received int
}

// Dialect says which layout the headers have; wire.Published is the default.
func Dialect(d wire.Dialect) Option { return func(o *options) { o.dialect = d } }

// Greeting says how many bytes come before the first packet: from the side that
// dialled, and from the side that accepted. They are shown as they are. A link
// given to Link counts as dialled.
//
// IMPI ch.2, Host-to-host connections: who connects sends its host rank, in 4
// bytes; so Greeting(4, 0) suits the channels of hosts.
func Greeting(dialled, accepted int) Option {
	return func(o *options) { o.sent, o.received = dialled, accepted }
}

func collect(opts []Option) options {
	var o options
	for _, f := range opts {
		f(&o)
	}
	return o
}

// Link shows the packets that l sends and receives on w, one line each, which
// begins with name and "->" or "<-". Every line is one Write, from the goroutine
// that calls the link; w may be written to by two of them at once. What w
// reports is ignored: a trace does not disturb what it watches.
func Link(l link.Link, name string, w io.Writer, opts ...Option) link.Link {
	return newLink(l, name, w, collect(opts))
}

func newLink(l link.Link, name string, w io.Writer, o options) *traced {
	direction := func(arrow string, skip int) decoder {
		return decoder{dialect: o.dialect, skip: skip, emit: func(line string) {
			fmt.Fprintf(w, "%s %s %s\n", name, arrow, line)
		}}
	}
	return &traced{Link: l, out: direction("->", o.sent), in: direction("<-", o.received)}
}

// traced is a link whose bytes are watched. It hides that the link is a socket:
// bytes must come through here.
type traced struct {
	link.Link
	out decoder // for Send alone
	in  decoder // for Recv alone
}

// Send sends, then shows what was taken.
func (t *traced) Send(batch [][]byte) (int, error) {
	n, err := t.Link.Send(batch)
	follow(&t.out, batch, n)
	if err != nil {
		t.out.end(err.Error())
	}
	return n, err
}

// Recv receives, then shows what came.
func (t *traced) Recv(batch [][]byte) (int, error) {
	n, err := t.Link.Recv(batch)
	follow(&t.in, batch, n)
	if errors.Is(err, io.EOF) {
		t.in.end("end of stream")
	} else if err != nil {
		t.in.end(err.Error())
	}
	return n, err
}

// CloseSend closes the direction, and shows it.
func (t *traced) CloseSend() error {
	err := t.Link.CloseSend()
	if err == nil {
		t.out.end("end of stream")
	}
	return err
}

// follow gives the first n bytes of batch to d.
func follow(d *decoder, batch [][]byte, n int) {
	for _, b := range batch {
		if n <= 0 {
			return
		}
		b = b[:min(n, len(b))]
		n -= len(b)
		d.write(b)
	}
}
