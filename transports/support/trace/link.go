package trace

import (
	"errors"
	"io"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
)

// Option changes what a trace makes of a link's bytes.
type Option func(*options)

type options struct {
	dialect        wire.Dialect
	sent, received int
	snap           int
	rank           func(wire.Proc) (int, bool)
	local, peer    int
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

// Snap says how many bytes of each packet's data a capture keeps, and so how much
// memory it takes for each direction of a link; DefaultSnap is the default.
func Snap(n int) Option { return func(o *options) { o.snap = max(n, 0) } }

// DefaultSnap keeps packets of the default size whole.
const DefaultSnap = 64 << 10

// Ranks says which rank a proc has, for a capture. It is called while the link is
// in use, by both of its directions.
func Ranks(of func(wire.Proc) (rank int, known bool)) Option {
	return func(o *options) { o.rank = of }
}

// Between says which ranks the link's ends have, this side's first; NoRank for one
// that has none. A capture shows them where no packet says it.
func Between(local, peer int) Option { return func(o *options) { o.local, o.peer = local, peer } }

// NoRank is the rank of what is no proc, an agent for one, or of who is not known.
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
	return &traced{
		Link: l,
		out:  decoder{dialect: o.dialect, skip: o.sent, to: out},
		in:   decoder{dialect: o.dialect, skip: o.received, to: in},
	}
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
