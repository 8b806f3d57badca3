package message

import (
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// The draft of March 1999 knows one context ID for a communicator, whose
// collectives have negative tags, and does not say in a packet which rank its
// sender has. The engine's users need not know: with them a communicator has two
// consecutive IDs, the first of them even, and ranks.
//
//	context 2c   tag t  <->  pk_cid c  pk_tag t
//	context 2c+1 tag t  <->  pk_cid c  pk_tag -t
//
// Messages are matched by the peers that they come from, and the user is asked
// for the ranks of those.

// draftOut puts an envelope's context and tag into a header.
func draftOut(o *wire.Packet) {
	if o.Context&1 != 0 {
		o.Tag = -o.Tag
	}
	o.Context >>= 1
}

// draftIn takes context and tag of a header that came from p.
func draftIn(in *wire.Packet, p *peer) {
	in.Context <<= 1
	if in.Tag < 0 {
		in.Context, in.Tag = in.Context+1, -in.Tag
	}
	in.LSRank = wire.CommRank(p.index)
}

// maxDraftContext is the largest pk_cid that can be told from all others.
const maxDraftContext wire.ContextID = 1<<63 - 1

// key is what a message from a peer is matched by, or a receive that admits no
// other peer. from is NoPeer with AnySource.
func (e *matcher) key(env *Envelope, from Peer) match.Key {
	k := match.Key{Context: env.Context, Source: env.Rank, Tag: env.Tag}
	if e.cfg.Dialect == wire.Draft && from != NoPeer {
		k.Source = wire.CommRank(from)
	}
	return k
}

// source is the rank of whom a message has come from.
func (e *matcher) source(k match.Key, p *peer) wire.CommRank {
	if e.cfg.Dialect != wire.Draft || e.cfg.RankOf == nil {
		return k.Source
	}
	return e.cfg.RankOf(k.Context, p.index)
}
