package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
)

// ClientMask has one bit for each client of the job; bit 0 is client 0.
type ClientMask uint32

// Has reports whether client c is in the mask; a number that is no client's is in none.
func (m ClientMask) Has(c ClientRank) bool { return c >= 0 && c < MaxClients && m>>c&1 != 0 }

// With returns the mask with client c added. It panics if c is no client rank.
func (m ClientMask) With(c ClientRank) ClientMask {
	if c < 0 || c >= MaxClients {
		panic(fmt.Sprintf("wire: no client mask has room for client %d", c))
	}
	return m | 1<<c
}

// Len returns how many clients are in the mask.
func (m ClientMask) Len() int { return bits.OnesCount32(uint32(m)) }

// MaskOf returns the mask of clients 0 to n-1, n being 0 to MaxClients.
func MaskOf(n int) ClientMask { return ClientMask(uint64(1)<<n - 1) }

func (m ClientMask) String() string {
	var s []string
	for c := ClientRank(0); c < MaxClients; c++ {
		if m.Has(c) {
			s = append(s, fmt.Sprint(c))
		}
	}
	return "{" + strings.Join(s, ",") + "}"
}

// Sizes of the fields before the values in the payload of a COLL command (IMPI ch.2, COLL command).
const (
	SubmissionSize = 4 // client to server: label
	AnswerSize     = 8 // server to client: label, client mask
)

// AppendColl appends the COLL command with which a client submits data.
func AppendColl(b []byte, l Label, data []byte) []byte {
	b = AppendCommand(b, CmdColl, int32(SubmissionSize+len(data)))
	b = binary.BigEndian.AppendUint32(b, uint32(l))
	return append(b, data...)
}

// ParseColl reads the payload of a client's COLL. data is a part of payload, not a copy.
func ParseColl(payload []byte) (l Label, data []byte, err error) {
	if len(payload) < SubmissionSize {
		return 0, nil, fmt.Errorf("COLL has %d bytes, no room for a label: %w", len(payload), ErrShort)
	}
	return Label(binary.BigEndian.Uint32(payload)), payload[SubmissionSize:], nil
}

// AppendAnswer appends the COLL command with which the server answers, up to the data,
// whose size is total bytes and which the caller appends.
func AppendAnswer(b []byte, l Label, m ClientMask, total int) []byte {
	b = AppendCommand(b, CmdColl, int32(AnswerSize+total))
	b = binary.BigEndian.AppendUint32(b, uint32(l))
	return binary.BigEndian.AppendUint32(b, uint32(m))
}

// ParseAnswer reads the payload of a server's COLL. data is a part of payload, not a copy.
func ParseAnswer(payload []byte) (l Label, m ClientMask, data []byte, err error) {
	if len(payload) < AnswerSize {
		return 0, 0, nil, fmt.Errorf("COLL has %d bytes, no room for a label and a client mask: %w", len(payload), ErrShort)
	}
	l = Label(binary.BigEndian.Uint32(payload))
	return l, ClientMask(binary.BigEndian.Uint32(payload[4:])), payload[AnswerSize:], nil
}
