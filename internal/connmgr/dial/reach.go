package dial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Local says of each candidate whether it stays on a machine.
func Local(candidates []routes.Candidate) []bool {
	local := make([]bool, len(candidates))
	for i, w := range candidates {
		local[i] = w.Transport.Machine()
	}
	return local
}

// WithLimit returns a transport whose dials take no longer than a limit.
func WithLimit(t transports.Transport, limit time.Duration) transports.Transport {
	return limited{t, limit}
}

type limited struct {
	transports.Transport
	limit time.Duration
}

// Dial dials by the transport, within the limit.
func (l limited) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	return l.Transport.Dial(ctx, to)
}

// IsUnreached reports whether a dial failed since there is no route to the address, nobody listens
// there, or nothing came in time.
func IsUnreached(err error) bool {
	var failed *transports.Error
	if !errors.As(err, &failed) || failed.Op != "dial" {
		return false
	}
	switch failed.Code {
	case transports.CodeUnreachable, transports.CodeRefused, transports.CodeTimeout:
		return true
	case transports.CodeResource: // not retryable if a firewall refused it
		return !failed.Retryable
	}
	return false
}

// Remedy returns what to do about hosts of an own client that are not reached by a candidate: the
// port of a host block is that of IMPI's own listener. It returns "" if that is not known, as the
// client is foreign.
func Remedy(rt *routes.Table, client wire.ClientRank, by routes.Candidate) string {
	ports := "write port = N in their host blocks and open that"
	if !by.Plain {
		ports = fmt.Sprintf("write port_range = \"FIRST-LAST\" in the config of transport %q and open those", by.Transport.Name)
	}
	if s, ok := rt.Job.Site(rt.SiteName(int(client))); ok && !s.Ports.IsZero() {
		return fmt.Sprintf("Hosts of %s take connections at ports %v, by TCP, and by UDP for quic: let those through between all hosts; impi-node ports prints the rules", rt.ClientName(client), s.Ports)
	}
	const which = "at free TCP ports, or UDP ports by quic: remove firewalls between them, or"
	switch {
	case client == rt.World.Self:
		return fmt.Sprintf("Hosts of a site connect to each other %s %s; or choose their addresses by network = \"10.77.0.0/16\" in the site block", which, ports)
	case rt.World.Listens(client):
		return fmt.Sprintf("Hosts of %s connect to those of %s %s %s", rt.ClientName(rt.World.Self), rt.ClientName(client), which, ports)
	}
	return ""
}
