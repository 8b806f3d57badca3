package host

import (
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/support/relay"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Origin describes how a link was made.
type Origin struct {
	Transport string
	Plane     transports.DataPlane
	Reason    string    // why that plane was chosen: a clause from the plugin
	When      time.Time // the link left the plugin
	ID        LinkID    // of a link whose bytes pass through the plugin
}

// LinkID names a link whose bytes pass through a plugin's process: its process ID and the link's
// number there. The zero value names no link.
type LinkID struct {
	process int
	number  uint64
}

const maxReason = 500

func (i *instance) newOrigin(number uint64, answer *proto.OpenDataPlaneResponse) Origin {
	reason := answer.GetReason()
	o := Origin{
		Transport: i.cfg.Name, Plane: transports.DataPlane(answer.GetMode()),
		Reason: reason[:min(len(reason), maxReason)], When: time.Now(),
	}
	if o.Plane != transports.PlaneFD && o.Plane != transports.PlanePeerSHM {
		o.ID = i.linkID(number)
		i.passing.Store(true)
	}
	return o
}

func (i *instance) linkID(number uint64) LinkID { return LinkID{i.proc.cmd.Process.Pid, number} }

// OriginOf returns how a link of this package was made. ok is false for links of other
// packages.
func OriginOf(l link.Link) (o Origin, ok bool) {
	if x, made := l.(interface{ origin() Origin }); made {
		return x.origin(), true
	}
	return o, false
}

// made is what a link of this package has in addition to the link that it wraps.
type made struct{ from Origin }

func (m made) origin() Origin { return m.from }

// PlaneReason returns the reason for the link's data plane.
func (m made) PlaneReason() string { return m.from.Reason }

// The links of this package: links of other packages, with their Origin.
type (
	socketLink struct {
		*socket.Link
		made
	}
	memoryLink struct {
		*ring.Link
		made
	}
	relayedLink struct {
		*relay.Link
		made
	}
)
