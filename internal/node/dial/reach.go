package dial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Reach is how long attempts to connect by all ways take to a host that runs impi and of which nothing has
// answered yet: what cannot be reached is named within 5 s. leastShare is how long one of these attempts
// takes at least.
const (
	Reach      = 4500 * time.Millisecond
	leastShare = 200 * time.Millisecond
)

// Share is how long the first of the ways to a host may take, of the time that is left for all of them.
// What stays on a machine has all the time, since no firewall keeps it from an answer.
func Share(left time.Duration, ways []routes.Way) time.Duration {
	if ways[0].T.Machine() {
		return Limit
	}
	away := 0
	for _, w := range ways {
		if !w.T.Machine() {
			away++
		}
	}
	return max(left/time.Duration(away), leastShare)
}

// Limited is a transport whose dials take no longer than a limit.
func Limited(t transports.Transport, limit time.Duration) transports.Transport {
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

// Unreached reports whether a dial failed since there is no way to the address, nobody listens there, or
// nothing came in time.
func Unreached(err error) bool {
	var failed *transports.Error
	if !errors.As(err, &failed) || failed.Op != "dial" {
		return false
	}
	switch failed.Code {
	case transports.CodeUnreachable, transports.CodeRefused, transports.CodeTimeout:
		return true
	case transports.CodeResource: // of which a firewall that refuses is one that does not pass
		return !failed.Retryable
	}
	return false
}

// Remedy says what to do about hosts of a client of ours that are not reached by a way: the port of a host
// block is that of IMPI's own way. Empty: it is not known, as the client is not ours.
func Remedy(rt *routes.Table, client wire.ClientRank, by routes.Way) string {
	ports := "write port = N in their host blocks and open that"
	if !by.Plain {
		ports = fmt.Sprintf("write port_range = \"FIRST-LAST\" in the config of transport %q and open those", by.T.Name)
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
