package trace

import (
	"fmt"
	"io"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Link writes the packets that l sends and receives to w, one line each, which begins with
// name and "->" or "<-". Every line is one Write, by the goroutine that calls the link; two
// goroutines may write at once. Errors of w are ignored, so that a trace does not disturb
// the link.
func Link(l link.Link, name string, w io.Writer, opts ...Option) link.Link {
	return newText(l, name, w, collect(opts))
}

func newText(l link.Link, name string, w io.Writer, o options) link.Link {
	return newLink(l, o, &text{w, name + " ->"}, &text{w, name + " <-"})
}

type text struct {
	w    io.Writer
	name string
}

func (t *text) greeting(b []byte)                         { t.notice(fmt.Sprintf("greeting %x", b)) }
func (t *text) header(p *wire.Packet, _ []byte, _ uint64) { t.notice(p.String()) }
func (t *text) data([]byte)                               {}
func (t *text) notice(line string)                        { fmt.Fprintf(t.w, "%s %s\n", t.name, line) }
