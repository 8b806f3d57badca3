package agent

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/wire"
)

// idSize is the size of a proc's identity in a header.
const idSize = 24

// identity is a proc's identity as it is in a header (IMPI ch.2, Proc labels; ch.3, pk_src
// and pk_dest), read as three words.
type identity struct{ a, b, c uint64 }

func readIdentity(b []byte) identity {
	_ = b[idSize-1]
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

// table finds the world rank of an identity: open addressing, at most half full.
type table struct {
	keys  []identity
	ranks []wire.WorldRank // NoRank: free
}

func newTable(n int) *table {
	size := 4
	for size < 2*n {
		size *= 2
	}
	t := &table{keys: make([]identity, size), ranks: make([]wire.WorldRank, size)}
	for i := range t.ranks {
		t.ranks[i] = NoRank
	}
	return t
}

func (t *table) slot(id identity) int {
	h := (id.a ^ id.b*0x9e3779b97f4a7c15 ^ id.c) * 0xd6e8feb86659fd93
	return int((h ^ h>>32) & uint64(len(t.keys)-1))
}

// insert adds an identity. If it is in the table already, insert returns the rank that has
// it, and false.
func (t *table) insert(id identity, r wire.WorldRank) (wire.WorldRank, bool) {
	i := t.slot(id)
	for ; t.ranks[i] != NoRank; i = (i + 1) & (len(t.keys) - 1) {
		if t.keys[i] == id {
			return t.ranks[i], false
		}
	}
	t.keys[i], t.ranks[i] = id, r
	return r, true
}

// find returns the rank of an identity, or NoRank.
func (t *table) find(id identity) wire.WorldRank {
	for i := t.slot(id); ; i = (i + 1) & (len(t.keys) - 1) {
		if r := t.ranks[i]; r == NoRank || t.keys[i] == id {
			return r
		}
	}
}
