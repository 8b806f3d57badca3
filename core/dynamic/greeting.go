package dynamic

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// The greeting is what both ends of a new direct link say before the packets:
//
//	dialler                          acceptor
//	  HELLO job, nonce, src, dst  -->    (or PROBE, SPAWN, SPARE, CONNECT, with the same fields,
//	                                      RESUMABLE, AGAIN, HOSTS, which add a session,
//	                                      LOST, which adds an epoch too,
//	                                      or MEET, which adds the dialler's world, and for a link
//	                                      that resumes what RESUMABLE, AGAIN or LOST add)
//	                              <--  CHALLENGE nonce
//	  PROOF mac                   -->
//	                              <--  VERDICT code, mac
//
// Every message starts with magic and kind and has a fixed size. A MAC is
// HMAC-SHA256, keyed with the job's token, over a label for its kind and all
// that was said so far; the nonces keep recordings from being of use. The
// acceptor shows nothing that depends on the token before the dialler has
// proven that it has it, and judges only then whom the link is for.
//
// CONNECT is keyed with a port's key, MEET with what a world tells those that it
// has met, and HOSTS with the channel's token, instead of the job's token; what stands
// for the job is derived from them alike.

// Sizes of the parts of a greeting.
const (
	TokenSize = 32
	NonceSize = 32
	// ResumableIDSize is the size in bytes of a resumable link's name.
	ResumableIDSize = 16
	jobIDSize       = 16
	macSize         = sha256.Size
)

// Token is a job's secret. Nonce is random bytes, fresh for each greeting.
type (
	Token [TokenSize]byte
	Nonce [NonceSize]byte
)

// Hello is a dialler's request: the purpose of the link.
type Hello struct {
	Src, Dst wire.WorldRank // the dialler's proc, and the proc that it wants to reach

	// Probe is true if the link is not for the procs, but for measuring the speed of data between
	// their nodes.
	Probe bool

	// Status is true if the dialler's node asks for the state of the procs of the acceptor's site.
	// No packets follow.
	Status bool

	// ResumableID, if not zero, is the name of a link that resumes. Resumes is true if this is a
	// further connection for it. Hosts is true if this is a connection of a channel, perhaps the first
	// one: Src and Dst are host ranks then (IMPI ch.2, Host-to-host connections).
	ResumableID ResumableID
	Resumes     bool
	Hosts       bool

	// Lost is true if the dialler has lost a link that resumes, up to its connection number Epoch,
	// and asks the acceptor, which made the link, to dial again. No packets follow.
	Lost  bool
	Epoch uint64

	// Spawn is true if a node has a request about spawned procs (MPI-4.1, 11.8.2). Src and Dst are
	// host ranks. No packets follow.
	Spawn bool

	// Spare is true if the node of a spare site, which is not in the job, lets the acceptor's node
	// ask it for procs over the link. Dst is a host rank, Src has no meaning. No packets follow.
	Spare bool

	// Connect is true if the link is for MPI_Comm_connect at a port (MPI-4.1, 11.9.3). Port takes
	// the place of the job; Src and Dst have no meaning.
	Connect bool
	Port    WorldID

	// World, if not zero, means that the link is for a proc of another world. It is the dialler's
	// world, in which Src is a rank.
	World WorldID
}

// Purpose is what a token gives access to. An acceptor may have another token for each: see [Keys].
type Purpose uint8

// The purposes.
const (
	OfJob     Purpose = iota // links inside a job, with its token
	OfPort                   // connecting to a port, with the port's key
	OfWorld                  // links from connected worlds, with the secret that they got
	OfChannel                // channels between hosts, each with a token of its own
)

func (k kind) purpose() Purpose {
	switch k {
	case kindConnect:
		return OfPort
	case kindMeet, kindMeetResumable, kindMeetAgain, kindMeetLost:
		return OfWorld
	case kindHosts:
		return OfChannel
	default:
		return OfJob
	}
}

func (h *Hello) String() string {
	switch {
	case h.Connect:
		return "connection to a port"
	case h.Status:
		return fmt.Sprintf("question of rank %d's node to rank %d's", h.Src, h.Dst)
	case h.Spawn:
		return fmt.Sprintf("spawn request from host %d to host %d", h.Src, h.Dst)
	case h.Spare:
		return fmt.Sprintf("offer of a spare site to host %d", h.Dst)
	case h.World != WorldID{}:
		return fmt.Sprintf("link from %v to rank %d", WorldProc{h.World, h.Src}, h.Dst)
	case h.Hosts:
		return fmt.Sprintf("channel from host %d to host %d", h.Src, h.Dst)
	}
	return fmt.Sprintf("direct link from rank %d to rank %d", h.Src, h.Dst)
}

// ResumableID is the name of a link that outlives its connections. It cannot be guessed, but
// greetings show it.
type ResumableID [ResumableIDSize]byte

func (h *Hello) kind() kind {
	switch {
	case h.Probe:
		return kindProbe
	case h.Status:
		return kindStatus
	case h.Spawn:
		return kindSpawn
	case h.Spare:
		return kindSpare
	case h.Connect:
		return kindConnect
	case h.World != WorldID{}:
		return h.kindOfMeeting()
	case h.ResumableID == ResumableID{}:
		return kindHello
	case h.Hosts:
		return kindHosts
	case h.Lost:
		return kindLost
	case h.Resumes:
		return kindAgain
	}
	return kindResumable
}

func (h *Hello) kindOfMeeting() kind {
	switch {
	case h.ResumableID == ResumableID{}:
		return kindMeet
	case h.Lost:
		return kindMeetLost
	case h.Resumes:
		return kindMeetAgain
	}
	return kindMeetResumable
}

func (k kind) hasWorld() bool {
	return k == kindMeet || k == kindMeetResumable || k == kindMeetAgain || k == kindMeetLost
}

func (h *Hello) set(k kind) {
	h.Probe = k == kindProbe
	h.Status = k == kindStatus
	h.Resumes = k == kindAgain || k == kindHosts || k == kindMeetAgain
	h.Hosts = k == kindHosts
	h.Lost = k == kindLost || k == kindMeetLost
	h.Spawn = k == kindSpawn
	h.Spare = k == kindSpare
	h.Connect = k == kindConnect
}

// helloSizeOf returns the size of a dialler's first message of that kind, 0 if k is none.
func helloSizeOf(k kind) int {
	switch k {
	case kindHello, kindProbe, kindSpawn, kindSpare, kindConnect, kindStatus:
		return helloSize
	case kindResumable, kindAgain, kindHosts:
		return helloSize + ResumableIDSize
	case kindMeet:
		return helloSize + WorldIDSize
	case kindMeetResumable, kindMeetAgain:
		return helloSize + WorldIDSize + ResumableIDSize
	case kindLost:
		return lostSize
	case kindMeetLost:
		return meetLostSize
	default: // not the start of a greeting
		return 0
	}
}

// Verdict is the acceptor's answer to a dialler.
type Verdict uint32

// The verdicts.
const (
	Accepted    Verdict = 0
	UnknownRank Verdict = 1  // the destination is none of the acceptor's procs, or the source is not in the job
	TieLost     Verdict = 2  // both ends dialled at once, and the other link is used
	WrongJob    Verdict = 3  // the dialler belongs to another job
	BadToken    Verdict = 4  // the dialler has not proven the token
	Malformed   Verdict = 5  // the dialler does not use this greeting
	Leaving     Verdict = 6  // the job is ending here
	NotAllowed  Verdict = 7  // the acceptor's routes do not allow such a link
	Busy        Verdict = 8  // the acceptor measures another link, still makes its first channels, or has drained the transport for a spare site
	UnknownLink Verdict = 9  // the acceptor has no link of that session, or no longer
	ClosedPort  Verdict = 10 // the port is closed
	PortFull    Verdict = 11 // too many connections wait at the port already
	StillLinked Verdict = 12 // the acceptor's proc has not closed its last link to the dialler's yet
)

// String returns the meaning of the verdict.
func (v Verdict) String() string {
	names := [...]string{"accepted", "unknown rank", "another link is used", "wrong job", "wrong token", "malformed greeting", "the job is ending", "not allowed by the routes", "busy with other probes", "no link of that session is left", "the port is closed", "too many wait at the port", "the last link is not closed yet"}
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("reason %d", uint32(v))
}

// Errors of greetings.
var (
	ErrGreeting = errors.New("malformed greeting")
	ErrToken    = errors.New("peer does not have the job's token")
	ErrJob      = errors.New("peer belongs to another job")
)

// RefusedError is the dialler's error if the acceptor has refused the link.
type RefusedError struct {
	Hello   Hello
	Verdict Verdict

	// Proven is true if the verdict came with a MAC of the token. Otherwise any process may have
	// sent it.
	Proven bool
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("dynamic: %v was refused: %v", &e.Hello, e.Verdict)
}

type kind uint32

const (
	kindHello kind = 1 + iota
	kindChallenge
	kindProof
	kindVerdict
	kindProbe     // a HELLO for a link that is only measured; older acceptors refuse it as malformed
	kindResumable // a HELLO for a link that resumes; the session follows
	kindAgain     // a HELLO for a further connection of a resumable link; the session follows
	kindHosts     // a HELLO for a connection of a channel; src and dst are host ranks, the session follows
	kindLost      // asks the acceptor to dial a resumable link again; session and epoch follow
	kindSpawn     // a HELLO between nodes, with host ranks; a request follows, and no packets
	kindConnect   // a HELLO with a port's key
	kindMeet      // a HELLO with the secret of another world; the dialler's world follows
	kindStatus    // a HELLO between nodes; a question follows, and no packets; older acceptors refuse it as malformed
	kindSpare     // a HELLO of a spare site's node; an offer follows, and no packets; older acceptors refuse it as malformed

	// MEET for a link that resumes, for a further connection of it, and to ask the acceptor to dial
	// it again: world and session follow, and the epoch. Older acceptors refuse them as malformed.
	kindMeetResumable
	kindMeetAgain
	kindMeetLost
)

// magic begins every message; its last byte is the version of the greeting.
const magic = 0x49444c01 // "IDL" and version 1

const headSize = 8

// Sizes of the messages.
const (
	helloSize     = headSize + jobIDSize + NonceSize + 8
	lostSize      = helloSize + ResumableIDSize + 8
	meetLostSize  = lostSize + WorldIDSize // the longest
	challengeSize = headSize + NonceSize
	proofSize     = headSize + macSize
	verdictSize   = headSize + 4 + macSize
)

func appendHead(b []byte, k kind) []byte {
	b = binary.BigEndian.AppendUint32(b, magic)
	return binary.BigEndian.AppendUint32(b, uint32(k))
}

func parseHead(b []byte) (kind, error) {
	m := binary.BigEndian.Uint32(b)
	switch {
	case m>>8 != magic>>8:
		return 0, fmt.Errorf("dynamic: %w: it begins with %08x", ErrGreeting, m)
	case m != magic:
		return 0, fmt.Errorf("dynamic: %w: version %d, not %d", ErrGreeting, m&0xff, magic&0xff)
	}
	return kind(binary.BigEndian.Uint32(b[4:])), nil
}

// jobID returns a name of a job that does not show its token.
func jobID(t *Token) (id [jobIDSize]byte) {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte("impi direct link: job"))
	copy(id[:], h.Sum(nil))
	return id
}

// sign returns the MAC of all that both ends have said, under a label for its kind.
func sign(t *Token, label string, said []byte) []byte {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte("impi direct link: " + label))
	h.Write([]byte{0})
	h.Write(said)
	return h.Sum(nil)
}
