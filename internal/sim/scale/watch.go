package scale

import (
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// sentOnly is what watches have that count what is sent and nothing else.
type sentOnly struct{}

// Received does nothing.
func (sentOnly) Received(*kernel.End, int) {}

// Ended does nothing.
func (sentOnly) Ended(*kernel.End) {}

type serverWatch struct {
	sentOnly
	m *meter
}

// Sent counts the bytes that the server sends.
func (w *serverWatch) Sent(from *kernel.End, data []byte) {
	if from == from.Link().Ends[1] {
		w.m.server += len(data)
	}
}

type channelWatch struct {
	sentOnly
	m    *meter
	ends [2]job.Endpoint
	dirs [2]direction
}

type direction struct {
	greeted bool
	head    []byte // the part of a header that was sent
	data    int    // bytes that follow the header
}

// Sent counts the packets that begin in data.
func (w *channelWatch) Sent(from *kernel.End, data []byte) {
	i := 0
	if from == from.Link().Ends[1] {
		i = 1
	}
	d := &w.dirs[i]
	if i == 0 && !d.greeted { // the end that has dialled sends its host rank first
		d.greeted = true
		data = data[agent.GreetingSize:]
	}
	if hosts := w.m.j.Hosts; hosts[w.ends[0].Number].Client == hosts[w.ends[1].Number].Client {
		w.m.hosts += d.packets(data)
		return
	}
	w.m.bytes += len(data)
	for range d.packets(data) {
		w.m.packets++
		for _, e := range w.ends {
			w.m.perSite[w.m.j.Hosts[e.Number].Client]++
		}
	}
}

func (d *direction) packets(data []byte) (n int) {
	for len(data) > 0 {
		if d.data > 0 {
			n := min(d.data, len(data))
			data, d.data = data[n:], d.data-n
			continue
		}
		k := min(wire.HeaderSize-len(d.head), len(data))
		d.head = append(d.head, data[:k]...)
		data = data[k:]
		if len(d.head) == wire.HeaderSize {
			var p wire.Packet
			if wire.Published.Header(d.head, &p); p.Type <= wire.PkDataSync {
				d.data = int(p.Len)
				n++
			}
			d.head = d.head[:0]
		}
	}
	return n
}

type procWatch struct {
	sentOnly
	m    *meter
	rank int
	proc int // its end of the link
	out  direction
}

// Sent counts the packets that begin in data.
func (w *procWatch) Sent(from *kernel.End, data []byte) {
	if from == from.Link().Ends[w.proc] {
		w.m.all += w.out.packets(data)
		w.m.allBytes += len(data)
		return
	}
	w.m.got[w.rank] += len(data)
}
