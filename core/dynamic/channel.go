package dynamic

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/openimpi/impi/core/wire"
)

// ChannelEnd is a host at one end of a channel, as all clients know it from startup (IMPI ch.2,
// Host labels).
type ChannelEnd struct {
	Rank    wire.HostRank
	Address wire.HostID // H_IPV6
	Port    uint16      // H_PORT
}

// Channel returns the token of the channel between two hosts, in whichever order they are given. It
// is derived from t, a secret that both sites have, and from both ends' ranks and addresses, so a
// proof for one channel is not valid for another one.
func (t *Token) Channel(a, b ChannelEnd) (token Token) {
	if a.Rank > b.Rank {
		a, b = b, a
	}
	h := hmac.New(sha256.New, t[:])
	said := []byte("impi channel: token\x00")
	for _, x := range []ChannelEnd{a, b} {
		said = binary.BigEndian.AppendUint32(said, uint32(x.Rank))
		said = append(said, x.Address[:]...)
		said = binary.BigEndian.AppendUint32(said, uint32(x.Port))
	}
	h.Write(said)
	h.Sum(token[:0])
	return token
}

// ChannelResumableID returns the session of a channel with this token, if the channel is a
// resumable link. Both ends can derive it, and no other process.
func (t *Token) ChannelResumableID() (s ResumableID) {
	h := hmac.New(sha256.New, t[:])
	h.Write([]byte("impi channel: session"))
	copy(s[:], h.Sum(nil))
	return s
}

// BeginsGreeting reports whether b is the start of a greeting, of any version, and not the host
// rank that IMPI has there (IMPI ch.2, Host-to-host connections): no job has so many hosts.
func BeginsGreeting(b [4]byte) bool { return binary.BigEndian.Uint32(b[:])>>8 == magic>>8 }
