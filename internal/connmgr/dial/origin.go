package dial

import (
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// planeReason tells why a link has its data plane: as the plugin's host has noted it, or as it is
// for all links of that kind.
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

func planeOf(l link.Link) string {
	if from, ok := host.OriginOf(l); ok {
		return string(from.Plane)
	}
	return ""
}

// Origin describes where a link comes from: its transport, its data plane, and the reason for that
// plane. What the link does not report is empty.
type Origin struct {
	Transport, Plane, Reason string
	ID                       host.LinkID // of a link whose bytes pass through the plugin
}

// OriginOf describes a link.
func OriginOf(l link.Link) Origin {
	from, _ := host.OriginOf(l)
	return Origin{from.Transport, planeOf(l), planeReason(l), from.ID}
}
