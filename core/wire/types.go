// Package wire has the types and byte layouts of IMPI 0.0: the commands and labels of the
// startup protocol (IMPI ch.2), and the packets that hosts exchange after it (IMPI ch.3).
// docs/wire.md has them as tables.
//
// Everything on an IMPI connection is big-endian. Encoding and decoding a header allocates
// nothing, keeps no reference to the caller's bytes, and trusts no length.
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// ClientRank numbers the clients (sites) of a job, 0 to MaxClients-1.
type ClientRank int32

// HostRank numbers the hosts of all clients of a job: by client rank, then by
// the client's own host order (IMPI ch.2, Host-to-host connections).
type HostRank int32

// WorldRank is a rank in MPI_COMM_WORLD: by client, then host, then proc.
type WorldRank int32

// CommRank is a rank in some communicator's group.
type CommRank int32

// ContextID separates the traffic of communicators (IMPI ch.4, Context IDs).
type ContextID uint64

// Tag is a message tag; user tags are 0 to the job's MPI_TAG_UB (IMPI ch.2, C_TAGUB).
type Tag int32

// TagOutOfRange is the decoded value of a draft tag that does not fit into 32 bits. No receive can
// match it.
const TagOutOfRange Tag = math.MinInt32

// RequestID names a request of a proc in pk_srqid and pk_drqid. Only the proc that chose a
// RequestID can interpret it.
type RequestID uint64

// MaxClients is the maximum number of clients of a job: the server's answers have one bit for each.
const MaxClients = 32

// HostID is the host part of a proc's identity (IMPI ch.2, Proc labels): 16 bytes in the form of an
// IPv6 address, compared and returned byte by byte.
type HostID [16]byte

// IPv4 returns the IPv4 address in h; ok is false if h has neither of the two forms
// (IPv4-compatible and IPv4-mapped).
func (h HostID) IPv4() (addr [4]byte, ok bool) {
	if binary.BigEndian.Uint64(h[:8]) != 0 || binary.BigEndian.Uint16(h[8:]) != 0 {
		return addr, false
	}
	if m := binary.BigEndian.Uint16(h[10:]); m != 0 && m != 0xffff {
		return addr, false
	}
	copy(addr[:], h[12:])
	return addr, true
}

// Proc identifies an MPI process on the wire. The pair is unique in a job.
type Proc struct {
	Host HostID
	PID  int64
}

// String returns the host's address, IPv4 where it is one, and the pid.
func (p Proc) String() string {
	return fmt.Sprintf("%v/%d", p.Host, p.PID)
}

// PacketType is pk_type, the kind of a packet.
type PacketType uint32

// The packet types of IMPI 0.0 (IMPI ch.3, Packet Protocol). User data follows only PkData
// and PkDataSync, whatever pk_len says.
const (
	PkData      PacketType = 0 // user data
	PkDataSync  PacketType = 1 // user data, answered by PkSyncAck once matched
	PkProtoAck  PacketType = 2 // flow control: exactly ackmark packets received
	PkSyncAck   PacketType = 3 // the message has been matched
	PkCancel    PacketType = 4 // the sender asks to cancel the message
	PkCancelYes PacketType = 5 // the message is destroyed
	PkCancelNo  PacketType = 6 // too late to cancel
	PkFini      PacketType = 7 // host to host: nothing more comes
)

// PkFail goes between own hosts that list FailVersion: the sender's part of the job has failed, and
// nothing more comes. Text of pk_len bytes, at most MaxFail, states why.
const PkFail PacketType = 0x10001

// PkLost goes between own hosts that list SurviveVersion: procs of the job are lost, and the job
// continues without them. Its pk_len bytes are those of AppendLost.
const PkLost PacketType = 0x10002

// The types by which the nodes at both ends of a channel ask each other, between own hosts that
// list AskVersion. Their srqid is the number of the question, by the host that asks.
const (
	// PkAsk is a question. Its pk_len bytes, at most MaxQuestion, follow.
	PkAsk PacketType = 0x10003
	// PkTell is a part of an answer. Its pk_len bytes, at most MaxAnswerPart, follow; msglen is the
	// length of the whole answer, 0 if there is none.
	PkTell PacketType = 0x10004
	// PkTold goes back to who answers. Its msglen is how many bytes of the answer have come. Not more
	// than AnswerWindow bytes may be on their way beyond that.
	PkTold PacketType = 0x10005
)

// Bounds of questions and answers over a channel, in bytes.
const (
	MaxQuestion   = 16 << 10
	MaxAnswerPart = 16 << 10
	AnswerWindow  = 8 * MaxAnswerPart
	MaxAnswer     = 16 << 20
)

var packetNames = [...]string{"DATA", "DATASYNC", "PROTOACK", "SYNCACK", "CANCEL", "CANCELYES", "CANCELNO", "FINI"}

// String returns the name that the standard uses, without its prefix.
func (t PacketType) String() string {
	if int(t) < len(packetNames) {
		return packetNames[t]
	}
	switch t {
	case PkFail:
		return "FAIL"
	case PkLost:
		return "LOST"
	case PkAsk:
		return "ASK"
	case PkTell:
		return "TELL"
	case PkTold:
		return "TOLD"
	default:
	}
	return "TYPE(" + strconv.FormatUint(uint64(t), 10) + ")"
}

// HasData reports whether pk_len bytes of user data follow the header.
func (t PacketType) HasData() bool { return t <= PkDataSync }

// Counted reports whether flow control counts the packet. IMPI ch.3, Packet Protocol:
// protocol ACKs are not counted; FINI is between hosts.
func (t PacketType) Counted() bool { return t != PkProtoAck && t != PkFini }

// Known reports whether IMPI 0.0 defines the type.
func (t PacketType) Known() bool { return t <= PkFini }
