package startup

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/openimpi/impi/core/wire"
)

// Auth contains the mechanisms of a side, with their secret (IMPI ch.2, Authentication). With the
// zero value no client can join.
type Auth struct {
	None   bool
	HasKey bool
	Key    uint64 // if HasKey
}

// ParseKey parses a key from a user: a decimal 64-bit integer, signed or unsigned. A hexadecimal
// key is refused, since other implementations read one as 0.
func ParseKey(s string) (uint64, error) {
	s = strings.TrimSpace(s)
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return u, nil
	}
	i, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the key is no decimal 64-bit integer", ErrConfig)
	}
	return uint64(i), nil
}

// Mask returns the mechanisms in the form of AUTH.
func (a Auth) Mask() wire.AuthMask {
	var m wire.AuthMask
	if a.None {
		m |= wire.AuthNone
	}
	if a.HasKey {
		m |= wire.AuthKey
	}
	return m
}

// String returns the names of the mechanisms, and never the key.
func (a Auth) String() string { return a.Mask().String() }

// GoString is String, so that no formatting verb prints the key.
func (a Auth) GoString() string { return a.String() }

// choose returns the strongest mechanism that both this side and the mask have.
func (a Auth) choose(mask wire.AuthMask) (wire.Mechanism, bool) {
	both := a.Mask() & mask
	switch {
	case both.Has(wire.MechKey):
		return wire.MechKey, true
	case both.Has(wire.MechNone):
		return wire.MechNone, true
	}
	return 0, false
}

// keyIs compares the key in constant time.
func (a Auth) keyIs(sent []byte) bool {
	var own [wire.KeySize]byte
	binary.BigEndian.PutUint64(own[:], a.Key)
	return subtle.ConstantTimeCompare(own[:], sent) == 1 && a.HasKey
}
