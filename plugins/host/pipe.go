package host

import (
	"context"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto/pipe"
	"github.com/openimpi/impi/plugins/sdk/support/relay"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// pipes are the links of an instance whose data plane is "grpc".
type pipes struct {
	conn.Pumps
	warn sync.Once
}

// pipe makes a link whose bytes pass through the control connection: a socket pair, and a
// pump in this process.
func (i *instance) pipe(id uint64, from Origin) (link.Link, error) {
	i.pipes.warn.Do(func() {
		i.log.Warn("links pass through the control connection (data plane grpc): "+
			"expect several times the latency of a socket and a tenth of its throughput", "reason", from.Reason)
	})
	far, err := pipe.Open(i.ctx, i.rpc, id)
	if err != nil {
		return nil, i.broken(i.ctx, "Pipe", err)
	}
	near, sock, tail, err := conn.NearSocket()
	if err != nil {
		far.Break()
		return nil, err
	}
	p := conn.NewPump(near, far)
	started := i.spawn(func() {
		// The pump itself notices the end of the instance only when bytes move, which may never
		// happen, and the next process is not started as long as the pump runs.
		defer context.AfterFunc(i.ctx, p.Close)()
		if err := i.pipes.Run(p); err != nil {
			i.log.Debug("link has broken", "link", id, "error", err)
		}
		far.Finish()
	})
	if !started {
		p.Close()
	}
	l, err := relay.NewStream(sock, tail, from.Plane, from.Transport)
	if err != nil {
		p.Close()
		return nil, err
	}
	return relayedLink{l, made{from}}, nil
}

// flush waits until the bytes of links that procs have closed are in the plugin, but no
// longer than atMost.
func (p *pipes) flush(atMost time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	p.Flush(ctx)
}
