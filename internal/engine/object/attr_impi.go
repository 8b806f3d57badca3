package object

import (
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// IMPI's attributes, which every communicator has, all ints. The colours are meant for
// Split: members with the same one are of the same client (a site), or of the same host
// (a machine's node). Those of an intercommunicator are about the group of the calling
// proc. A program that no impi-node started has sizes of 1 and colours of 0.
//
// IMPI ch.2, User Attributes. The standard gives names and no values.
const (
	ClientSize  comm.Keyval = 801 // IMPI_CLIENT_SIZE: number of the members' clients
	ClientColor comm.Keyval = 802 // IMPI_CLIENT_COLOR: 0 to ClientSize-1, in the order of the lowest ranks
	HostSize    comm.Keyval = 803 // IMPI_HOST_SIZE: number of the members' hosts
	HostColor   comm.Keyval = 804 // IMPI_HOST_COLOR: 0 to HostSize-1, over all clients, in the order of the lowest ranks
)

// ofIMPI returns the value of one of IMPI's attributes; ok is false for other keys.
func ofIMPI(c *proc.Comm, key comm.Keyval) (value int, ok bool) {
	switch key {
	case ClientSize:
		return c.Masters().Count(), true
	case ClientColor:
		return c.Masters().Number(c.Rank()), true
	case HostSize:
		return len(hosts(c)), true
	case HostColor:
		return slices.Index(hosts(c), hostOf(c, c.Self())), true
	default:
		return 0, false
	}
}

// hosts returns the hosts of the members, each once, in the order of their lowest ranks.
func hosts(c *proc.Comm) (hosts []wire.HostRank) {
	seen := make(map[wire.HostRank]bool)
	for rank := range c.Size() {
		proc, _ := c.Proc(rank)
		if host := hostOf(c, proc); !seen[host] {
			seen[host] = true
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// hostOf returns the host of a proc. Of other worlds only the clients are known; each counts as a
// host here.
func hostOf(c *proc.Comm, p comm.Proc) wire.HostRank {
	if job := c.Process().Job; int(p) < job.Size() {
		return job.Proc(wire.WorldRank(p)).Node
	}
	return -1 - wire.HostRank(c.ClientOf(p))
}
