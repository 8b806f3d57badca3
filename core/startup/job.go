package startup

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// Job describes a job, as a client has it when startup is over. It is equal at all clients of a
// job, except for Self and, in a job with foreign clients, for Token and the cards. It does not
// change after that.
type Job struct {
	Self    wire.ClientRank // the client that this Job was made for
	Clients []ClientInfo    // by client rank
	Hosts   []HostInfo      // by host rank
	Procs   Procs           // by rank in MPI_COMM_WORLD

	DataLen   uint32   // most bytes of user data in a packet
	TagUB     wire.Tag // MPI_TAG_UB
	XSize     int32    // bytes from which collectives use their long protocol (C_COLL_XSIZE)
	MaxLinear int32    // most masters for which collectives are linear (C_COLL_MAXLINEAR)
	AckMark   uint32   // packets that one PROTOACK stands for (IMPI ch.3, Packet Protocol)
	HiWater   uint32   // most packets that a pair may have unacknowledged

	// AllOwn is set if every client listed wire.PrivateVersion. Then Token, a secret, is that of
	// client 0, and every ProcInfo.Card is set. In a job with foreign clients each own client has
	// its own token and the cards of its own procs, so that these procs have links to each other,
	// and to procs that they spawn, as in other jobs.
	AllOwn bool
	Token  [TokenSize]byte

	// Secret is shared by the own clients only. It is Token if AllOwn or, in a job with foreign
	// clients, derived from the key with which this client has joined. It is zero if there is
	// neither.
	Secret [TokenSize]byte

	// Server is the address of the server at which the clients have met, as who has joined it and
	// its site's other hosts know it; empty if they do not.
	Server string
}

// SharesSecret reports whether another client has the same Secret as this one.
func (j *Job) SharesSecret(with wire.ClientRank) bool {
	return j.Secret != [TokenSize]byte{} && j.Clients[j.Self].Own && j.Clients[with].Own
}

// Listens reports whether all hosts of a client listen before any client has the job, as those of
// own clients do: a host that does not answer then cannot be reached.
func (j *Job) Listens(c wire.ClientRank) bool { return c == j.Self || j.Clients[c].Own }

// ClientInfo is what all clients know of one of them after startup.
type ClientInfo struct {
	Rank      wire.ClientRank
	Versions  []wire.Version // ascending
	NHosts    int
	NProcs    int
	FirstHost wire.HostRank
	FirstProc wire.WorldRank
	Own       bool // the client lists wire.PrivateVersion
}

// Lists reports whether the client speaks version v of the protocol, which may stand for a feature.
func (c *ClientInfo) Lists(v wire.Version) bool { return slices.Contains(c.Versions, v) }

// HostInfo is what all clients know of a host after startup.
type HostInfo struct {
	Client    wire.ClientRank
	Address   wire.HostID // where it listens
	FirstProc wire.WorldRank
	Port      int // 0 for a host to which no other has to connect
	NProcs    int
}

// ProcInfo is what a client knows of a proc after startup.
type ProcInfo struct {
	ID     wire.Proc // as in the packets' headers; unique
	Client wire.ClientRank
	Host   wire.HostRank
	Card   []byte // business card; nil if unknown: see Job.AllOwn; empty if the proc has none
}

// Size returns the number of clients.
func (j *Job) Size() int { return len(j.Clients) }

// HostOf returns the host rank of the host at index local of client c.
func (j *Job) HostOf(c wire.ClientRank, local int) wire.HostRank {
	return j.Clients[c].FirstHost + wire.HostRank(local)
}
