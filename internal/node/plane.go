package node

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

// transportOf names the transport that made a link, or nothing.
func transportOf(l link.Link) string {
	from, _ := host.OriginOf(l)
	return from.Transport
}

// origin is where a link comes from, for those who ask.
type origin struct{ transport, plane, reason string }

func originOf(l link.Link) origin { return origin{transportOf(l), planeOf(l), planeReason(l)} }
