package routes

import (
	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/internal/zstd"
)

// CompressFeatures returns the features with the clients to which links are to be compressed.
func CompressFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(wireup.Zstd, job, site, func(r config.Route) bool { return r.Compress != nil })
}

// compressed reports whether both ends of a pair want links between them to be compressed. Procs of
// other MPIs have no cards, so that they never do.
func compressed(rt *Table, a, b wire.WorldRank) bool {
	ours, theirs := rt.Cards.At(a), rt.Cards.At(b)
	return ours != nil && theirs != nil &&
		route.HasFeature(ours, wireup.Zstd, rt.World.Procs.At(b).Client) && route.HasFeature(theirs, wireup.Zstd, rt.World.Procs.At(a).Client)
}

// Compress returns how a proc of ours compresses what it sends to another by a transport, or nil if
// it does not. Data that stay on a machine are never compressed. Both ends get the same result,
// except level and min, which each end sets itself.
func Compress(rt *Table, local, peer wire.WorldRank, t *Transport) *wireup.Compress {
	c := CurrentSite(rt).RouteTo(rt.SiteName(int(rt.World.Procs.At(peer).Client))).Compress
	if c == nil || t != nil && t.Machine() || !compressed(rt, local, peer) {
		return nil
	}
	return &wireup.Compress{Algorithm: c.Algorithm, Level: c.Level, Min: c.Min}
}

// WhyNotCompressed returns why a pair's link by a transport is not compressed though the route asks
// for it; empty if the route does not. A transport without a name is that of the agents' channel.
func WhyNotCompressed(rt *Table, local, peer wire.WorldRank, transport string) string {
	client := rt.World.Procs.At(peer).Client
	t := rt.Transport(transport)
	switch {
	case rt.RouteTo(peer).Compress == nil:
		return ""
	case Foreign(rt, client):
		return rt.ClientName(client) + " is run by another MPI"
	case rt.Cards.At(local) == nil || rt.Cards.At(peer) == nil:
		return rt.WhyNoCards(peer)
	case !compressed(rt, local, peer):
		return "the route back of " + rt.ClientName(client) + " has no compress block, or its card had no room to say so"
	case t != nil && t.Machine():
		return transport + " does not leave the machine"
	case transport == "":
		return "packets go through the agents, whose channel may be compressed"
	}
	return ""
}

// CompressChannel returns how the channel of a host of ours to another one is compressed, whatever
// its transport is, or nil if it is not.
func CompressChannel(rt *Table, a, b wire.HostRank) (*compress.Config, error) {
	ra, rb := rt.FirstRankOf(a), rt.FirstRankOf(b)
	if ra < 0 || rb < 0 {
		return nil, nil
	}
	c := Compress(rt, ra, rb, nil)
	if c == nil {
		return nil, nil
	}
	codec, err := zstd.New(c.Level)
	return &compress.Config{Codec: codec, Min: c.Min}, err
}
