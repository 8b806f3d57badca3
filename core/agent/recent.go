package agent

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// recents is how many procs, and how many pairs, are cached. A look-up outside the cache costs
// several times more.
const recents = 512

// directory finds procs by their identities in headers (IMPI ch.3, Packet Format).
type directory struct {
	procs  startup.Procs
	recent [recents]found
}

func newDirectory(procs startup.Procs) *directory {
	procs.Index()
	return &directory{procs: procs}
}

type found struct {
	id   identity
	rank wire.WorldRank
	host wire.HostRank
	ok   bool
}

// identity is a proc's identity as it is in a header (IMPI ch.2, Proc labels; ch.3, pk_src
// and pk_dest), read as three words.
type identity struct{ a, b, c uint64 }

func readIdentity(b []byte) identity {
	_ = b[23]
	be := binary.BigEndian
	return identity{be.Uint64(b), be.Uint64(b[8:]), be.Uint64(b[16:])}
}

func identityOf(p wire.Proc) identity {
	be := binary.BigEndian
	return identity{be.Uint64(p.Host[:8]), be.Uint64(p.Host[8:]), uint64(p.PID)}
}

func (id identity) proc() (p wire.Proc) {
	binary.BigEndian.PutUint64(p.Host[:8], id.a)
	binary.BigEndian.PutUint64(p.Host[8:], id.b)
	p.PID = int64(id.c)
	return p
}

func (d *directory) find(id identity) (rank wire.WorldRank, host wire.HostRank, ok bool) {
	h := (id.a ^ id.b*0x9e3779b97f4a7c15 ^ id.c) * 0xd6e8feb86659fd93
	x := &d.recent[(h^h>>32)%recents]
	if x.id != id || !x.ok {
		rank, host, ok = d.procs.Find(id.proc())
		if !ok {
			return 0, 0, false
		}
		*x = found{id, rank, host, true}
	}
	return x.rank, x.host, true
}
