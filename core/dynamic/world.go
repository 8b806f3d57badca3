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

// WorldIDSize is the size in bytes of a world's name. It is the size of a host ID of IMPI (IMPI
// ch.2, Proc labels), whose place it takes in packets.
const WorldIDSize = jobIDSize

// WorldID is the name of the procs that were started together and share one MPI_COMM_WORLD
// (MPI-4.1, 11.2). It is derived from the token of their job, but does not reveal it. All procs of
// a job know it, and no two jobs have the same.
type WorldID [WorldIDSize]byte

// String returns the name in hexadecimal digits.
func (w WorldID) String() string { return hex.EncodeToString(w[:]) }

// World returns the name of the world of the job that has this token, or of the port that has this
// key.
func (t *Token) World() WorldID { return jobID(t) }

// Meeting derives the secret that this world sends to other worlds when they connect. With it their
// procs can make links to procs of this world, and nothing else.
func (t *Token) Meeting() (secret Token) {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte("impi: worlds that meet"))
	copy(secret[:], h.Sum(nil))
	return secret
}

// WorldProc names a proc uniquely among all jobs: its world, and its rank there.
type WorldProc struct {
	World WorldID
	Rank  wire.WorldRank
}

// Compare orders procs by world and rank. If two procs open a link to each other at the same time,
// the lower one's link is used.
func (m WorldProc) Compare(o WorldProc) int {
	if c := bytes.Compare(m.World[:], o.World[:]); c != 0 {
		return c
	}
	return cmp.Compare(m.Rank, o.Rank)
}

// Identity returns the identity of the proc in packets between worlds. Hosts and pids of two jobs
// can be the same, so the name of the world takes the place of the host ID, and the rank that of
// the pid (IMPI ch.3, Packet Format).
func (m WorldProc) Identity() wire.Proc {
	return wire.Proc{Host: wire.HostID(m.World), PID: int64(m.Rank)}
}

// String returns rank and world, the latter shortened.
func (m WorldProc) String() string {
	return fmt.Sprintf("rank %d of world %s", m.Rank, m.World.String()[:8])
}
