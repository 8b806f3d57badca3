package dynamic

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// WorldSize is the size of a world's name, which fits where IMPI has a host's.
const WorldSize = jobIDSize

// World names the procs that were started together and share one MPI_COMM_WORLD. It is derived
// from the token of their job, but does not reveal it. All procs of a job know it, and no two
// jobs have the same.
type World [WorldSize]byte

// String is the name in hexadecimal digits.
func (w World) String() string { return hex.EncodeToString(w[:]) }

// World names the world of the job that has this token, or the port that has this key.
func (t *Token) World() World { return jobID(t) }

// Meeting derives the secret that worlds which meet this one are told. With it they can greet
// each proc of this world; it is good for nothing else.
func (t *Token) Meeting() (secret Token) {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte("impi: worlds that meet"))
	copy(secret[:], h.Sum(nil))
	return secret
}

// Member is a proc of any world.
type Member struct {
	World World
	Rank  wire.WorldRank
}

// Compare orders procs by world and rank. Where two of them open a link to each
// other at the same time, the lower one's is used.
func (m Member) Compare(o Member) int {
	if c := bytes.Compare(m.World[:], o.World[:]); c != 0 {
		return c
	}
	return cmp.Compare(m.Rank, o.Rank)
}

// Identity is what packets between worlds call the proc. Hosts and process
// numbers of two jobs can be the same; the name of a world stands in for the host,
// and the rank for the process number.
func (m Member) Identity() wire.Proc {
	return wire.Proc{Host: wire.HostID(m.World), PID: int64(m.Rank)}
}

// String says rank and world, the latter shortened.
func (m Member) String() string {
	return fmt.Sprintf("rank %d of world %s", m.Rank, m.World.String()[:8])
}
