package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// CommandSize is the size of the header of every message between client and server, except
// for the answer to AUTH and the key (IMPI ch.2, Startup).
const CommandSize = 8

// ErrShort is wrapped by the errors of payloads that are too short.
var ErrShort = errors.New("payload is too short")

// Command is the first word of a message between client and server: four letters.
type Command uint32

// The commands of IMPI 0.0, and two extensions.
const (
	CmdAuth Command = 0x41555448 // mechanisms that the client has
	CmdIMPI Command = 0x494D5049 // client rank; answered by the job's size
	CmdColl Command = 0x434F4C4C // one label's values; answered by those of all clients
	CmdDone Command = 0x444F4E45 // no more labels; answered when all clients have sent it
	CmdFini Command = 0x46494E49 // the client's procs have finished; no answer

	// CmdFiniReversed is CmdFini as early LAM on little-endian machines wrote it.
	CmdFiniReversed Command = 0x494E4946

	// CmdFail is an extension: text that states why the sender is about to close. A peer that does
	// not know the command skips it, as IMPI ch.2 requires for unknown commands, or gives up, which
	// it has to do anyway.
	CmdFail Command = 0x4641494C

	// CmdSpare is an extension: a site sends it in the place of CmdIMPI's client rank if it has no
	// procs in the job. The site may come when the job already runs. It is answered as a client is,
	// with all that the clients submit, and at the end of a job that went well by CmdFini.
	CmdSpare Command = 0x53504152
)

// String returns the four letters, or the number if they are not letters.
func (c Command) String() string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(c))
	for _, x := range b {
		if x < 'A' || x > 'Z' {
			return fmt.Sprintf("0x%08x", uint32(c))
		}
	}
	return string(b[:])
}

// AppendCommand appends a command header to b: c, and n bytes that follow.
func AppendCommand(b []byte, c Command, n int32) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(c))
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

// ParseCommand reads a command header from b[:CommandSize]. It accepts any bytes; the
// receiver must check n, which may be negative or too large. It panics if b is shorter.
func ParseCommand(b []byte) (c Command, n int32) {
	_ = b[CommandSize-1]
	return Command(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:]))
}

// AppendIMPI appends the IMPI command (IMPI ch.2, IMPI command) with v: the client's rank in the
// message to the server, the number of clients in the message to the client.
func AppendIMPI(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(AppendCommand(b, CmdIMPI, 4), uint32(v))
}

// ParseIMPI reads the payload of an IMPI command.
func ParseIMPI(payload []byte) (v int32, err error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("IMPI has %d bytes, not 4: %w", len(payload), errLen(len(payload), 4))
	}
	return int32(binary.BigEndian.Uint32(payload)), nil
}

// SpareVersion is the version of the protocol that CmdSpare begins.
const SpareVersion = 1

// AppendSpare appends CmdSpare, which only servers of ours understand.
func AppendSpare(b []byte) []byte {
	return binary.BigEndian.AppendUint32(AppendCommand(b, CmdSpare, 4), SpareVersion)
}

// ParseSpare reads the version in the payload of CmdSpare.
func ParseSpare(payload []byte) (version uint32, err error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("SPAR has %d bytes, not 4: %w", len(payload), errLen(len(payload), 4))
	}
	return binary.BigEndian.Uint32(payload), nil
}

// MaxFail is the most bytes of text that CmdFail carries.
const MaxFail = 1024

// AppendFail appends CmdFail with the first MaxFail bytes of text.
func AppendFail(b []byte, text string) []byte {
	text = text[:min(len(text), MaxFail)]
	return append(AppendCommand(b, CmdFail, int32(len(text))), text...)
}

// ErrLong is wrapped by the errors of payloads that are too long.
var ErrLong = errors.New("payload is too long")

func errLen(have, want int) error {
	if have < want {
		return ErrShort
	}
	return ErrLong
}
