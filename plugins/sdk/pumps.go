package sdk

import (
	"context"

	"github.com/openimpi/impi/transports/conn"
)

// pumps are the links whose bytes this process passes on.
type pumps struct {
	conn.Pumps
	life      context.Context // of the server
	keepAwake *keepAwake
}

func newPumps(life context.Context) *pumps { return &pumps{life: life, keepAwake: newKeepAwake()} }

// run runs the pump of a link until it ends.
func (r *pumps) run(id uint64, p *conn.Pump) {
	r.keepAwake.enter()
	defer r.keepAwake.leave()
	if err := r.Run(p); err != nil && r.life.Err() == nil {
		Logger().Debug("link has broken", "link", id, "error", err)
	}
}
