package dial

import (
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/transports"
)

// planeReason tells why a link leaves its plugin by its data plane: as the
// plugin's host noted it, or what is true of every such link.
func planeReason(l link.Link) string {
	if x, ok := l.(interface{ PlaneReason() string }); ok && x.PlaneReason() != "" {
		return x.PlaneReason()
	}
	switch l.(type) {
	case transports.Socket:
		return "the transport made a kernel socket, whose descriptor the proc has"
	case transports.Memory:
		return "the transport made shared memory, which both procs have"
	}
	return ""
}

// planeOf names a link's data plane.
func planeOf(l link.Link) string {
	if from, ok := host.OriginOf(l); ok {
		return string(from.Plane)
	}
	return ""
}

// Origin is where a link comes from, for those who ask: its transport, its data plane, and
// why it is this plane. What the link does not tell is empty.
type Origin struct{ Transport, Plane, Reason string }

// OriginOf asks a link.
func OriginOf(l link.Link) Origin {
	from, _ := host.OriginOf(l)
	return Origin{from.Transport, planeOf(l), planeReason(l)}
}
