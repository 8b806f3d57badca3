package sdk

import (
	"context"
	"io"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// pumps are the links whose bytes this process passes on.
type pumps struct {
	conn.Pumps
	life      context.Context // of the server
	keepAwake *keepAwake

	mu     sync.Mutex
	far    map[uint64]io.Closer // connections of the links, by the links' numbers
	resent uint64               // packets, on connections that are closed
}

func newPumps(life context.Context) *pumps {
	return &pumps{life: life, keepAwake: newKeepAwake(), far: make(map[uint64]io.Closer)}
}

// run runs the pump of a link, which leads to far, until it ends.
func (r *pumps) run(id uint64, p *conn.Pump, far io.Closer) {
	r.keepAwake.enter()
	defer r.keepAwake.leave()
	r.mu.Lock()
	r.far[id] = far
	r.mu.Unlock()
	p.OnEnd(func() { r.ends(id, far) })
	if err := r.Run(p); err != nil && r.life.Err() == nil {
		Logger().Debug("link has broken", "link", id, "error", err)
	}
}

// ends counts what a connection that is about to be closed has sent again.
func (r *pumps) ends(id uint64, far io.Closer) {
	_, n := conn.Estimate(far)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resent += n
	delete(r.far, id)
}

// estimates returns the round-trip times of links, and how many packets were sent again.
func (r *pumps) estimates() (list []*proto.LinkEstimate, resent uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resent = r.resent
	for id, far := range r.far {
		rtt, n := conn.Estimate(far)
		resent += n
		if rtt > 0 && len(list) < mostEstimates {
			list = append(list, &proto.LinkEstimate{LinkId: id, RoundTripNs: uint64(rtt)})
		}
	}
	return list, resent
}

const mostEstimates = 16 << 10 // links in an answer to Stats
