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
//	  HELLO job, nonce, src, dst  -->    (or PROBE, SPAWN, CALL, with the same fields,
//	                                      RESUMABLE, AGAIN, HOSTS, which add a session,
//	                                      LOST, which adds an epoch too,
//	                                      or MEET, which adds the dialler's world)
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
// CALL is keyed with a port's key, MEET with what a world tells those that it
// has met, and HOSTS with the channel's token, instead of the job's token; what stands
// for the job is derived from them alike.

// Sizes of what the greeting is made from.
const (
	TokenSize = 32
	NonceSize = 32
	// SessionSize is the size of a resumable link's name.
	SessionSize = 16
	jobIDSize   = 16
	macSize     = sha256.Size
)

// Token is a job's secret. Nonce is random bytes, fresh for each greeting.
type (
	Token [TokenSize]byte
	Nonce [NonceSize]byte
)

// Hello says what a direct link is for.
type Hello struct {
	Src, Dst wire.WorldRank // the dialler's proc, and the one it wants

	// Probe tells that the link is not for the procs, but to find out how fast
	// their nodes can talk by it.
	Probe bool

	// Session is not zero for a link that outlives its connection: it names it.
	// Again tells that this is a further connection for it, and Hosts that it is a
	// channel's, perhaps the first: Src and Dst are ranks of hosts then.
	Session Session
	Again   bool
	Hosts   bool

	// Lost tells that the dialler has lost the link, up to the connection Epoch,
	// which the acceptor once dialled: it is the acceptor's to dial again. No packets
	// follow.
	Lost  bool
	Epoch uint64

	// Spawn tells that a node wants something of another one; Src and Dst are ranks
	// of hosts. No packets follow.
	Spawn bool

	// Call tells that the link is for whoever opened the port Port, which stands in
	// for the job. Src and Dst mean nothing.
	Call bool
	Port World

	// World is not zero for a link to a proc of another world: it is the dialler's,
	// in which Src is a rank.
	World World
}

// Purpose says what kind of token a greeting is about.
type Purpose uint8

// The purposes.
const (
	OfJob     Purpose = iota // links inside a job, with its token
	OfPort                   // calls of a port, with its key
	OfWorld                  // links from other worlds, with the secret of those that met
	OfChannel                // channels between hosts, with the token of each
)

// purpose is what a Hello's greeting is about.
func (k kind) purpose() Purpose {
	switch k {
	case kindCall:
		return OfPort
	case kindMeet:
		return OfWorld
	case kindHosts:
		return OfChannel
	default:
		return OfJob
	}
}

// String says what the link is.
func (h *Hello) String() string {
	switch {
	case h.Call:
		return "call of a port"
	case h.Spawn:
		return fmt.Sprintf("spawn request from host %d to host %d", h.Src, h.Dst)
	case h.World != World{}:
		return fmt.Sprintf("link from %v to rank %d", Member{h.World, h.Src}, h.Dst)
	case h.Hosts:
		return fmt.Sprintf("channel from host %d to host %d", h.Src, h.Dst)
	}
	return fmt.Sprintf("direct link from rank %d to rank %d", h.Src, h.Dst)
}

// Session names a link that outlives its connections. It is unguessable, but
// shown on the way.
type Session [SessionSize]byte

// kind is how a Hello is said.
func (h *Hello) kind() kind {
	switch {
	case h.Probe:
		return kindProbe
	case h.Spawn:
		return kindSpawn
	case h.Call:
		return kindCall
	case h.World != World{}:
		return kindMeet
	case h.Session == Session{}:
		return kindHello
	case h.Hosts:
		return kindHosts
	case h.Lost:
		return kindLost
	case h.Again:
		return kindAgain
	}
	return kindResumable
}

// set is the reverse of kind.
func (h *Hello) set(k kind) {
	h.Probe = k == kindProbe
	h.Again = k == kindAgain || k == kindHosts
	h.Hosts = k == kindHosts
	h.Lost = k == kindLost
	h.Spawn = k == kindSpawn
	h.Call = k == kindCall
}

// helloSizeOf is the size of what a dialler may begin with, or 0.
func helloSizeOf(k kind) int {
	switch k {
	case kindHello, kindProbe, kindSpawn, kindCall:
		return helloSize
	case kindResumable, kindAgain, kindHosts:
		return helloSize + SessionSize
	case kindMeet:
		return helloSize + WorldSize
	case kindLost:
		return lostSize
	default: // nobody begins with it
		return 0
	}
}

// Verdict is what an acceptor says to a dialler.
type Verdict uint32

// The verdicts.
const (
	Accepted    Verdict = 0
	UnknownRank Verdict = 1  // the destination is none of the acceptor's procs, or the source not in the job
	TieLost     Verdict = 2  // both dialled at once, and the other link is used
	WrongJob    Verdict = 3  // the dialler belongs to another job
	BadToken    Verdict = 4  // the dialler does not have the job's token
	Malformed   Verdict = 5  // the dialler does not speak this greeting
	Leaving     Verdict = 6  // the job is ending here
	NotAllowed  Verdict = 7  // the acceptor's routes do not want such a link
	Busy        Verdict = 8  // the acceptor answers other probes, or still makes its first channels
	UnknownLink Verdict = 9  // the acceptor has no link of that session, or no longer
	ClosedPort  Verdict = 10 // the port is closed
	Crowded     Verdict = 11 // too many wait at the port already
	StillLinked Verdict = 12 // the acceptor's proc has not closed the last link to the dialler's yet
)

// String says what the verdict means.
func (v Verdict) String() string {
	names := [...]string{"accepted", "unknown rank", "another link is used", "wrong job", "wrong token", "malformed greeting", "the job is ending", "not allowed by the routes", "busy with other probes", "no link of that session is left", "the port is closed", "too many wait at the port", "the last link is not closed yet"}
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("reason %d", uint32(v))
}

// Why a greeting fails.
var (
	ErrGreeting = errors.New("malformed greeting")
	ErrToken    = errors.New("peer does not have the job's token")
	ErrJob      = errors.New("peer belongs to another job")
)

// RefusedError is the dialler's error when the acceptor did not want the link.
type RefusedError struct {
	Hello   Hello
	Verdict Verdict

	// Proven tells that the verdict came with the job's token. Without it,
	// anybody may have said it.
	Proven bool
}

// Error names the ranks and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("dynamic: %v was refused: %v", &e.Hello, e.Verdict)
}

// kind is the kind of a message of the greeting.
type kind uint32

const (
	kindHello kind = 1 + iota
	kindChallenge
	kindProof
	kindVerdict
	kindProbe     // a HELLO for a link that is measured; who does not know it refuses it as malformed
	kindResumable // a HELLO for a link that outlives this connection; then the session
	kindAgain     // a HELLO for a further connection of such a link
	kindHosts     // the first or a further connection of a channel: src and dst are ranks of hosts
	kindLost      // instead of a HELLO: the acceptor should dial such a link again; then the epoch
	kindSpawn     // a HELLO between nodes, of hosts: a request follows, no packets
	kindCall      // a HELLO with a port's key
	kindMeet      // a HELLO with the secret of a world that was met; then the dialler's world
)

// magic begins every message; its last byte is the version of the greeting.
const magic = 0x49444c01 // "IDL", 1

const headSize = 8

// Sizes of the messages.
const (
	helloSize     = headSize + jobIDSize + NonceSize + 8
	lostSize      = helloSize + SessionSize + 8
	challengeSize = headSize + NonceSize
	proofSize     = headSize + macSize
	verdictSize   = headSize + 4 + macSize
)

func appendHead(b []byte, k kind) []byte {
	b = binary.BigEndian.AppendUint32(b, magic)
	return binary.BigEndian.AppendUint32(b, uint32(k))
}

// parseHead reads b[:headSize].
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

// jobID names a job without giving its token away.
func jobID(t *Token) (id [jobIDSize]byte) {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte("impi direct link: job"))
	copy(id[:], h.Sum(nil))
	return id
}

// sign gives the MAC of everything said, under a label of its own.
func sign(t *Token, label string, said []byte) []byte {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte("impi direct link: " + label))
	h.Write([]byte{0})
	h.Write(said)
	return h.Sum(nil)
}
