package host

import (
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/plugins/proto"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
	"github.com/openimpi/impi/transports/support/relay"
	"github.com/openimpi/impi/transports/support/ring"
)

// Origin is how a link came about.
type Origin struct {
	Transport string
	Plane     transports.DataPlane
	Reason    string    // why that plane: a clause, from the plugin
	When      time.Time // the link left the plugin
}

// maxReason bounds what a plugin can have to say, in bytes.
const maxReason = 500

func newOrigin(transport string, answer *proto.OpenDataPlaneResponse) Origin {
	reason := answer.GetReason()
	return Origin{
		Transport: transport, Plane: transports.DataPlane(answer.GetMode()),
		Reason: reason[:min(len(reason), maxReason)], When: time.Now(),
	}
}

// OriginOf returns how a link came about that this package has made. ok is false for
// others.
func OriginOf(l link.Link) (o Origin, ok bool) {
	if x, made := l.(interface{ origin() Origin }); made {
		return x.origin(), true
	}
	return o, false
}

// made is what the links of this package know more than those of others.
type made struct{ from Origin }

func (m made) origin() Origin { return m.from }

// PlaneReason tells why the link has its data plane.
func (m made) PlaneReason() string { return m.from.Reason }

// The links of this package: those of others, with their origin.
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
