package packetswitch

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// refusing is a link whose other end has sent something and closed: that is there once something
// was written in vain.
type refusing struct {
	link.Link
	refused atomic.Bool
}

func (r *refusing) Send([][]byte) (int, error) {
	r.refused.Store(true)
	return 0, link.ErrBroken
}

func (r *refusing) Recv(batch [][]byte) (int, error) {
	if !r.refused.Load() {
		return 0, nil
	}
	return r.Link.Recv(batch)
}

// TestClosedChannelSaysWhy: what a host has said before it closed its channel is read, though
// nothing can be written there any more.
func TestClosedChannelSaysWhy(t *testing.T) {
	b := newBenchOver(t, "0", func(t *testing.T) (ours, theirs link.Link) {
		ours, theirs = socketPair(t)
		return ours, &refusing{Link: theirs}
	})
	const why = "rank 2 was killed"
	fail := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(fail, &wire.Packet{Type: wire.PkFail, Len: uint32(len(why))})
	send(t, b.channel, append(fail, why...))
	send(t, b.procs[0], packet(0, 2, 10))
	for ev := range b.events {
		if ev.Kind != agent.HostDied {
			continue
		}
		if said, ok := errors.AsType[*agent.FailedError](ev.Err); !ok || said.Text != why {
			t.Errorf("the host is lost by %v", ev.Err)
		}
		return
	}
}
