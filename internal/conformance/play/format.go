package play

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/internal/conformance/iut"
)

// The numbers of IMPI 0.0, from the text and the headers of two implementations. They are
// deliberately not those of core/wire: a mistake in core/wire must not be repeated here.

// command is the first word of a record between client and server.
type command uint32

const (
	cmdAuth command = 0x41555448
	cmdIMPI command = 0x494D5049
	cmdColl command = 0x434F4C4C
	cmdDone command = 0x444F4E45
	cmdFini command = 0x46494E49
)

func (c command) String() string {
	b := [4]byte{byte(c >> 24), byte(c >> 16), byte(c >> 8), byte(c)}
	for _, x := range b {
		if x < 0x20 || x > 0x7e {
			return fmt.Sprintf("command 0x%08x", uint32(c))
		}
	}
	return string(b[:])
}

// known reports whether IMPI has the command. Others are an implementation's own.
func (c command) known() bool {
	switch c {
	case cmdAuth, cmdIMPI, cmdColl, cmdDone, cmdFini:
		return true
	}
	return false
}

// Mechanisms of authentication; their bits in the mask of AUTH are 1<<mechanism.
const (
	authNone = iut.AuthNone
	authKey  = iut.AuthKey
)

// label is what a COLL record is about.
type label uint32

const (
	cVersion   label = 0x1000
	cNHosts    label = 0x1100
	cNProcs    label = 0x1200
	cDataLen   label = 0x1300
	cTagUB     label = 0x1400
	cXSize     label = 0x1500
	cMaxLinear label = 0x1600
	hIPv6      label = 0x2000
	hPort      label = 0x2100
	hNProcs    label = 0x2200
	hAckMark   label = 0x2300
	hHiWater   label = 0x2400
	pIPv6      label = 0x3000
	pPID       label = 0x3100
)

// labels are all of them, ascending, with the bytes of one value.
var labels = []struct {
	label label
	name  string
	width int
}{
	{cVersion, "C_VERSION", 8}, {cNHosts, "C_NHOSTS", 4}, {cNProcs, "C_NPROCS", 4}, {cDataLen, "C_DATALEN", 4},
	{cTagUB, "C_TAGUB", 4}, {cXSize, "C_COLL_XSIZE", 4}, {cMaxLinear, "C_COLL_MAXLINEAR", 4},
	{hIPv6, "H_IPV6", 16}, {hPort, "H_PORT", 4}, {hNProcs, "H_NPROCS", 4}, {hAckMark, "H_ACKMARK", 4}, {hHiWater, "H_HIWATER", 4},
	{pIPv6, "P_IPV6", 16}, {pPID, "P_PID", 8},
}

func (l label) String() string {
	for _, x := range labels {
		if x.label == l {
			return x.name
		}
	}
	return fmt.Sprintf("label 0x%x", uint32(l))
}

// pkType is the field pk_type of a packet's header (IMPI ch. 3, Packet Format).
type pkType uint32

const (
	pkData      pkType = 0
	pkDataSync  pkType = 1
	pkProtoAck  pkType = 2
	pkSyncAck   pkType = 3
	pkCancel    pkType = 4
	pkCancelYes pkType = 5
	pkCancelNo  pkType = 6
	pkFini      pkType = 7
)

func (k pkType) String() string {
	names := [...]string{"DATA", "DATASYNC", "PROTOACK", "SYNCACK", "CANCEL", "CANCELYES", "CANCELNO", "FINI"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("type %d", uint32(k))
}

func (k pkType) hasData() bool { return k == pkData || k == pkDataSync }

// counted reports whether flow control counts the packet.
func (k pkType) counted() bool { return k != pkProtoAck && k != pkFini }

// Context IDs of MPI_COMM_WORLD, and the tags of the collectives that the tester takes part in.
const (
	worldCID  = 0
	worldColl = 1 // collectives of MPI_COMM_WORLD

	tagBarrier = 110
	tagBcast   = 120
	tagReduce  = 190
)

// Meanings of -1 in C_COLL_XSIZE and C_COLL_MAXLINEAR.
const (
	defaultXSize     = 1024
	defaultMaxLinear = 4
)

const headerSize = 128

// record is a message between client and server that has a header.
type record struct {
	cmd  command
	data []byte
}

const recordHeader = 8

func (r record) bytes() []byte {
	return append(rawHeader(r.cmd, int32(len(r.data))), r.data...)
}

func rawHeader(c command, n int32) []byte {
	return binary.BigEndian.AppendUint32(u32(uint32(c)), uint32(n))
}

func (r record) String() string {
	switch {
	case r.cmd == cmdAuth && len(r.data) == 4:
		return fmt.Sprintf("AUTH mask=0x%x", binary.BigEndian.Uint32(r.data))
	case r.cmd == cmdIMPI && len(r.data) == 4:
		return fmt.Sprintf("IMPI %d", int32(binary.BigEndian.Uint32(r.data)))
	case r.cmd == cmdColl && len(r.data) >= 4:
		return fmt.Sprintf("COLL %v len=%d %s", label(binary.BigEndian.Uint32(r.data)), len(r.data), shortHex(r.data[4:]))
	case len(r.data) == 0:
		return r.cmd.String()
	}
	return fmt.Sprintf("%v len=%d %s", r.cmd, len(r.data), shortHex(r.data))
}

func u32(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func u64(v ...uint64) (b []byte) {
	for _, x := range v {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	return b
}

// coll is what a client submits.
func coll(l label, values []byte) record { return record{cmdColl, append(u32(uint32(l)), values...)} }

// answer is what the server answers when it has all clients' values of a label.
func answer(l label, mask uint32, values []byte) record {
	return record{cmdColl, append(u32(uint32(l), mask), values...)}
}
