package wire

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Mechanism is a way for a client to prove that it belongs to the job (IMPI ch.2,
// Authentication).
type Mechanism int32

// The mechanisms of IMPI 0.0.
const (
	MechNone Mechanism = 0 // no proof
	MechKey  Mechanism = 1 // a 64-bit key that both sides were given
)

func (m Mechanism) String() string {
	switch m {
	case MechNone:
		return "NONE"
	case MechKey:
		return "KEY"
	}
	return "MECHANISM(" + strconv.Itoa(int(m)) + ")"
}

// AuthMask has one bit for each mechanism that a side supports.
type AuthMask uint32

// The bits of an AuthMask.
const (
	AuthNone AuthMask = 1 << MechNone
	AuthKey  AuthMask = 1 << MechKey
)

// Has reports whether m is in the mask. A mechanism from outside may be any number: one that a mask
// has no bit for is in none.
func (a AuthMask) Has(m Mechanism) bool { return m >= 0 && m < 32 && a>>m&1 != 0 }

// String lists the mechanisms by name; bits without a name are a number.
func (a AuthMask) String() string {
	if a == 0 {
		return "nothing"
	}
	var names []string
	for _, m := range []Mechanism{MechNone, MechKey} {
		if a.Has(m) {
			names = append(names, m.String())
		}
	}
	if rest := a &^ (AuthNone | AuthKey); rest != 0 {
		names = append(names, fmt.Sprintf("0x%x", uint32(rest)))
	}
	return strings.Join(names, "+")
}

// Sizes of the two messages of the startup protocol that have no command header.
const (
	AuthChoiceSize = 8 // the server's answer to AUTH
	KeySize        = 8 // the client's key
)

// AppendAuth appends the AUTH command, by which a client offers its mechanisms (IMPI ch.2,
// Authentication).
func AppendAuth(b []byte, mask AuthMask) []byte {
	return binary.BigEndian.AppendUint32(AppendCommand(b, CmdAuth, 4), uint32(mask))
}

// ParseAuth reads the payload of an AUTH command.
func ParseAuth(payload []byte) (AuthMask, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("AUTH has %d bytes, not 4: %w", len(payload), errLen(len(payload), 4))
	}
	return AuthMask(binary.BigEndian.Uint32(payload)), nil
}

// AppendAuthChoice appends the server's answer to AUTH: the mechanism, and a length, which is 0 for
// both mechanisms.
func AppendAuthChoice(b []byte, m Mechanism) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m))
	return binary.BigEndian.AppendUint32(b, 0)
}

// ParseAuthChoice reads b[:AuthChoiceSize]. The length n has no meaning: after NONE and KEY
// no bytes follow, whatever it says. It panics if b is shorter.
func ParseAuthChoice(b []byte) (m Mechanism, n int32) {
	_ = b[AuthChoiceSize-1]
	return Mechanism(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:]))
}

// AppendKey appends a key in its wire form, 8 bytes big-endian.
func AppendKey(b []byte, key uint64) []byte { return binary.BigEndian.AppendUint64(b, key) }
