package trace

import (
	"errors"
	"io"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Option changes how a trace interprets or keeps a link's bytes.
type Option func(*options)

type options struct {
	dialect        wire.Dialect
	sent, received int
	snap           int
	rank           func(wire.Proc) (int, bool)
	local, peer    int
}

// Dialect sets the layout of the headers; the default is wire.Published.
func Dialect(d wire.Dialect) Option { return func(o *options) { o.dialect = d } }

// Greeting sets how many bytes come before the first packet: from the side that dialled,
// and from the side that accepted. They are shown unchanged. A link given to Link counts as
// dialled.
//
// IMPI ch.2, Host-to-host connections: the dialler sends its host rank in 4 bytes, so
// Greeting(4, 0) is right for channels of hosts.
func Greeting(dialled, accepted int) Option {
	return func(o *options) { o.sent, o.received = dialled, accepted }
}

// Snap sets the number of bytes of each packet's data that a capture keeps, and so the memory for
// each direction of a link; the default is DefaultSnap.
func Snap(n int) Option { return func(o *options) { o.snap = max(n, 0) } }

// DefaultSnap keeps packets of the default size whole.
const DefaultSnap = 64 << 10

// Ranks sets a function that returns a proc's rank, for a capture. Both directions call it
// while the link is in use.
func Ranks(of func(wire.Proc) (rank int, known bool)) Option {
	return func(o *options) { o.rank = of }
}

// Between sets the ranks of the link's ends, this side's first; NoRank for an end that has
// none. A capture shows them if a packet does not name them.
func Between(local, peer int) Option { return func(o *options) { o.local, o.peer = local, peer } }

// NoRank is the rank of an end that is not a proc, such as an agent, or is unknown.
const NoRank = -1

func collect(opts []Option) options {
	o := options{
		snap: DefaultSnap, local: NoRank, peer: NoRank,
		rank: func(wire.Proc) (int, bool) { return NoRank, false },
	}
	for _, f := range opts {
		f(&o)
	}
	return o
}

func newLink(l link.Link, o options, out, in sink) link.Link {
	t := &traced{
		Link: l,
		out:  decoder{dialect: o.dialect, skip: o.sent, to: out},
		in:   decoder{dialect: o.dialect, skip: o.received, to: in},
	}
	if r, ok := l.(link.Recaller); ok {
		return tracedRecaller{t, r}
	}
	return t
}

// tracedRecaller is traced for a link that fills memory by itself.
type tracedRecaller struct {
	*traced
	below link.Recaller
}

// Recall implements link.Recaller.
func (t tracedRecaller) Recall() { t.below.Recall() }

// traced is a link whose bytes are traced. It hides that the link is a socket, since all
// bytes must pass through its methods.
type traced struct {
	link.Link
	out decoder // used by Send only
	in  decoder // used by Recv only
}

// Send sends, and traces what was taken.
func (t *traced) Send(batch [][]byte) (int, error) {
	n, err := t.Link.Send(batch)
	follow(&t.out, batch, n)
	if err != nil {
		t.out.end(err.Error())
	}
	return n, err
}

// Recv receives, and traces what came.
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

// CloseSend ends this side's stream, and adds that to the trace.
func (t *traced) CloseSend() error {
	err := t.Link.CloseSend()
	if err == nil {
		t.out.end("end of stream")
	}
	return err
}

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
