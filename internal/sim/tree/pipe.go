package tree

import (
	"io"

	pb "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/internal/sim/kernel"
)

// frameHeader is the size of gRPC's header of a message, in bytes.
const frameHeader = 5

// pipe is one end of a connection between two hosts. The kernel's link carries as many bytes as the
// messages have; the messages themselves are passed beside it, as they are never changed. So a
// large message is in memory only once, however many hosts get it.
type pipe struct {
	end  *kernel.End
	peer *pipe
	out  []frame // frames that are not sent completely
	sent int     // bytes of out[0], as the link counts them
	in   []frame // frames on their way here
	got  int     // bytes of in[0]
	hear func(pb.Message)
	gone func(why error) // why is nil if it ended in order; the pipe is closed then
	buf  []byte          // buffer for bytes that are read and ignored
	note *Traffic        // traffic of the host at this end
	thin int             // bytes of messages for which one byte of the link stands

	leaving bool // the pipe closes once out is empty, and ignores what it receives
}

type frame struct {
	m          pb.Message
	size, long int
}

// connect makes the pipes at both ends of a link. Each must be given to run.
func connect(l *kernel.Link, buf []byte, thin int) (a, b *pipe) {
	a, b = &pipe{end: l.Ends[0], buf: buf, thin: thin}, &pipe{end: l.Ends[1], buf: buf, thin: thin}
	a.peer, b.peer = b, a
	return a, b
}

func (p *pipe) run(note *Traffic, hear func(pb.Message), gone func(error)) {
	p.note, p.hear, p.gone = note, hear, gone
	p.end.OnReady(p.ready)
}

func (p *pipe) ready() {
	for p.end != nil {
		n, err := p.end.Recv([][]byte{p.buf})
		if err != nil {
			p.close()
			if p.leaving {
				return
			}
			if err == io.EOF { //nolint:errorlint // links report io.EOF itself
				err = nil
			}
			p.gone(err)
			return
		}
		if n == 0 {
			break
		}
		p.got += n
		p.deliver()
	}
	p.flush()
}

func (p *pipe) deliver() {
	for p.end != nil && !p.leaving && len(p.in) > 0 && p.got >= p.in[0].long {
		f := p.in[0]
		p.in, p.got = p.in[1:], p.got-f.long
		p.note.Received++
		p.note.BytesIn += f.size
		p.hear(f.m)
	}
}

func (p *pipe) send(m pb.Message) {
	if p.end == nil {
		return
	}
	size := frameHeader + pb.Size(m)
	f := frame{m, size, (size-1)/p.thin + 1}
	p.note.Sent++
	p.note.BytesOut += f.size
	p.out = append(p.out, f)
	p.flush()
}

func (p *pipe) flush() {
	for p.end != nil && len(p.out) > 0 {
		f := p.out[0]
		n, err := p.end.Send([][]byte{p.buf[:min(f.long-p.sent, len(p.buf))]})
		if err != nil || n == 0 {
			return // Recv returns the reason, if the caller needs it
		}
		if p.sent == 0 {
			p.peer.in = append(p.peer.in, f)
		}
		if p.sent += n; p.sent == f.long {
			p.out, p.sent = p.out[1:], 0
		}
	}
	if p.leaving && p.end != nil {
		_ = p.end.CloseSend() // the other end closes when it has read everything
	}
}

// close closes at once. Nothing is heard after that.
func (p *pipe) close() {
	if p.end != nil {
		_ = p.end.Close() // never fails
		p.end = nil
	}
}

// hang stops without notice to the other end, like a machine that loses power.
func (p *pipe) hang() {
	if p.end != nil {
		p.end.Link().Stall(kernel.Forever)
		p.end.OnReady(nil)
		p.end = nil
	}
}
