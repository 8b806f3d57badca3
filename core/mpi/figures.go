package mpi

import "github.com/openimpi/impi/core/message"

// Figures are what the library knows of itself, for tools. Those that count grow
// from Init on; the others are as things are now.
type Figures struct {
	Messages   uint64 // sent to procs of this job: the first packet has left, or waits to
	Completed  uint64 // sends and receives
	Sent       uint64 // bytes, by the links that count them
	Received   uint64
	Links      int // to other procs, without an agent between
	Unexpected int // messages that wait for a receive
	Posted     int // receives that wait for a message
	Buffered   int // bytes of BufferAttach that are taken

	PacketData int // most bytes of data in a packet to another site (C_DATALEN)
	AckMark    int // packets after which an acknowledgement is asked for
	HiWater    int // packets that may be without one
	Check      bool
}

// Measure gives the figures as they are now. It counts when it is called; nothing
// is counted for it.
func Measure() (Figures, error) {
	p, err := current()
	if err != nil {
		return Figures{}, failed("Measure", err)
	}
	return p.figures(), nil
}

func (p *process) figures() Figures {
	p.lock()
	defer p.unlock()
	f := Figures{
		Completed: p.eng.Completed(), Buffered: p.eng.Room().Used(), Check: p.check,
		PacketData: int(p.job.DataLen), AckMark: int(p.job.AckMark), HiWater: int(p.job.HiWater),
	}
	f.Unexpected, f.Posted = p.eng.Waiting()
	for r := range p.job.Procs {
		f.Messages += p.eng.SentTo(message.Peer(r))
	}
	for _, q := range p.ports {
		if q == nil {
			continue
		}
		if q.peer != message.NoPeer {
			f.Links++
		}
		if c, ok := q.Link.(interface {
			Counts() (sent, received uint64)
		}); ok {
			sent, received := c.Counts()
			f.Sent, f.Received = f.Sent+sent, f.Received+received
		}
	}
	return f
}
