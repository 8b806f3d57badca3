package message

import (
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// In the draft of March 1999 a communicator has one context ID and its collectives have
// negative tags, and a packet does not say which rank its sender has. The engine's users
// need not know: for them a communicator has two consecutive IDs, the first of them even,
// and ranks.
//
//	context 2c   tag t  <->  pk_cid c  pk_tag t
//	context 2c+1 tag t  <->  pk_cid c  pk_tag -t
//
// Messages are matched by the peers that they come from, and Config.RankOf says which ranks
// those have.

func draftOut(o *wire.Packet) {
	if o.Context&1 != 0 {
		o.Tag = -o.Tag
	}
	o.Context >>= 1
}

func draftIn(in *wire.Packet, p *peer) {
	in.Context <<= 1
	if in.Tag < 0 {
		in.Context, in.Tag = in.Context+1, -in.Tag
	}
	in.LSRank = wire.CommRank(p.index)
}

// maxDraftContext is the largest pk_cid whose two context IDs fit into 64 bits.
const maxDraftContext wire.ContextID = 1<<63 - 1

// key returns the key of a message from a peer, or of a receive that admits only this peer.
// With AnySource from is NoPeer.
func (e *matcher) key(env *Envelope, from Peer) match.Key {
	k := match.Key{Context: env.Context, Source: env.Rank, Tag: env.Tag}
	if e.cfg.Dialect == wire.Draft && from != NoPeer {
		k.Source = wire.CommRank(from)
	}
	return k
}

// source returns the rank in the communicator of the sender of a message with key k, which came
// from p.
func (e *matcher) source(k match.Key, p *peer) wire.CommRank {
	if e.cfg.Dialect != wire.Draft || e.cfg.RankOf == nil {
		return k.Source
	}
	return e.cfg.RankOf(k.Context, p.index)
}
