package host

import (
	"context"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// Stats asks the plugin for its counters. It does not start the plugin.
func (p *Plugin) Stats(ctx context.Context) (*proto.StatsResponse, error) {
	p.mu.Lock()
	inst := p.cur
	p.mu.Unlock()
	if inst == nil {
		return nil, p.failure("stats", "", p.Status().LastErr)
	}
	answer, err := inst.rpc.Stats(ctx, &proto.StatsRequest{Call: inst.call(ctx)})
	if err != nil {
		return nil, inst.broken(ctx, "Stats", err)
	}
	return answer, nil
}
