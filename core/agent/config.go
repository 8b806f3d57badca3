package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// ErrConfig is wrapped by every error of New: hosts, procs and limits contradict each
// other.
var ErrConfig = errors.New("agent: the job does not hang together")

// DefaultChunkSize is the size in bytes of the chunks that links are read into, unless Config sets
// another one. Half of it costs more system calls per byte; four times as much does not stay in the
// caches.
const DefaultChunkSize = 128 << 10

// minChunkSize has room for one header and a part of the next one.
const minChunkSize = 2 * wire.HeaderSize

// Host is one host of the job.
type Host struct {
	Client wire.ClientRank

	// Own is true if the host is one of ours. Its procs and those of this host may also have direct
	// links, so the agent sees only some of a pair's packets and cannot check the pair's window.
	Own bool

	// Fails is true if the host accepts PkFail, as this one does.
	Fails bool

	// Survives is true if the host accepts PkLost, as this one does.
	Survives bool

	// Asks is true if the host accepts PkAsk and answers it, as this one does.
	Asks bool

	// Unlinked is true if there is no channel to the host, as IMPI allows for two hosts of one
	// client. A packet for it is a protocol error.
	Unlinked bool

	// OnDemand is true if the channel to the host is made when the first packet needs it, by
	// whichever of the two hosts has such a packet first: see HostWanted. Channels of this kind
	// that were never made need no end.
	OnDemand bool
}

// Config describes the job to one of its hosts, as agreed at startup (IMPI ch.2).
type Config struct {
	Self  wire.HostRank
	Hosts []Host        // by host rank; it must not change
	Procs startup.Procs // of the job, in the order of their hosts, each with another identity

	MaxData uint32 // maximum user data bytes of a packet (C_DATALEN)
	AckMark uint32 // number of packets that one PROTOACK acknowledges
	HiWater uint32 // maximum counted packets of a pair that are not acknowledged

	// Dialect is the job's dialect. wire.Draft has no FINI: the end of a channel's stream counts as
	// FINI if it comes between two packets. So the agent cannot distinguish a host that died there
	// from one that has finished; the job's server can.
	Dialect wire.Dialect

	ChunkSize int // bytes; 0 means DefaultChunkSize
}

// ConfigOf returns the Config of host self of the site whose channels are c. survives is set if the
// job goes on without lost procs.
func ConfigOf(c *Channels, self wire.HostRank, survives bool, dialect wire.Dialect) Config {
	job := c.c.Job
	x := Config{Self: self, MaxData: job.DataLen, AckMark: job.AckMark, HiWater: job.HiWater, Dialect: dialect, Procs: job.Procs}
	both := func(client wire.ClientRank, v wire.Version) bool {
		return job.Clients[job.Self].Lists(v) && job.Clients[client].Lists(v)
	}
	for i, h := range job.Hosts {
		other := h.Client != job.Self
		x.Hosts = append(x.Hosts, Host{
			Client: h.Client, Own: job.Clients[h.Client].Own, Survives: survives, OnDemand: c.OnDemand(self, wire.HostRank(i)),
			Fails: !other || both(h.Client, wire.FailVersion),
			Asks:  other && both(h.Client, wire.AskVersion) && c.Proves(h.Client), // a site's own hosts ask each other by their tree
		})
	}
	return x
}

func (c *Config) check() error {
	if c.Self < 0 || int(c.Self) >= len(c.Hosts) {
		return fmt.Errorf("%w: own host rank %d of %d hosts", ErrConfig, c.Self, len(c.Hosts))
	}
	if c.MaxData < 1 || c.MaxData > math.MaxInt32-wire.HeaderSize {
		return fmt.Errorf("%w: maximum data length %d: must be 1 to %d", ErrConfig, c.MaxData, math.MaxInt32-wire.HeaderSize)
	}
	if c.AckMark < 1 || c.AckMark > c.HiWater {
		return fmt.Errorf("%w: ackmark %d, hiwater %d: must be 1 <= ackmark <= hiwater", ErrConfig, c.AckMark, c.HiWater)
	}
	c.ChunkSize = cmp.Or(c.ChunkSize, DefaultChunkSize)
	if c.ChunkSize < minChunkSize || c.ChunkSize > math.MaxInt32 {
		return fmt.Errorf("%w: chunk size %d: must be %d or more", ErrConfig, c.ChunkSize, minChunkSize)
	}
	return c.checkProcs()
}

// checkProcs makes sure that each host's procs have consecutive world ranks.
func (c *Config) checkProcs() error {
	last := wire.HostRank(0)
	for r, p := range c.Procs.All() {
		if p.Host < 0 || int(p.Host) >= len(c.Hosts) {
			return fmt.Errorf("%w: proc %d is on host %d of %d", ErrConfig, r, p.Host, len(c.Hosts))
		}
		if p.Host < last {
			return fmt.Errorf("%w: proc %d is on host %d, but the one before it on host %d", ErrConfig, r, p.Host, last)
		}
		last = p.Host
	}
	return nil
}
