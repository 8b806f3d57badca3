package wire

import (
	"cmp"
	"encoding/binary"
	"fmt"
)

// VersionSize is the size in bytes of a Version in messages of the startup.
const VersionSize = 8

// Version is a version of the protocol. A client lists those that it speaks; two clients use the
// highest that both list (IMPI ch.2, C_VERSION).
type Version struct{ Major, Minor uint32 }

// The versions that own clients list (IMPI ch.2, C_VERSION).
var (
	Version00      = Version{0, 0}
	PrivateVersion = Version{0, 0x10001} // the client sends our extension labels and keeps to what its cards announce
	// AllowsVersion is listed by own clients whose procs use allowances
	// (docs/decisions/0035-unexpected-messages-are-bounded.md) in jobs without cards, where each
	// proc begins with the smallest allowance.
	AllowsVersion = Version{0, 0x10002}
	// OnDemandVersion is listed by own clients that make channels of large jobs when packets need
	// them (docs/decisions/0046-channels-on-demand.md). A change of the pairs of hosts for which
	// they do so requires the next number.
	OnDemandVersion = Version{0, 0x10003}
	// FailVersion is listed by own clients whose hosts accept PkFail
	// (docs/decisions/0048-jobs-outlive-their-server.md).
	FailVersion = Version{0, 0x10004}
	// LostVersion is listed by own clients that accept LabelLost from the server.
	LostVersion = Version{0, 0x10005}
	// SurviveVersion is listed by own clients that continue without procs that are lost, and accept
	// PkLost (docs/decisions/0058-jobs-outlive-their-procs.md).
	SurviveVersion = Version{0, 0x10006}
	// AskVersion is listed by own clients whose nodes answer each other over channels: PkAsk
	// (docs/decisions/0078-questions-over-channels.md).
	AskVersion = Version{0, 0x10007}
)

// Less reports whether v is the lower version.
func (v Version) Less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Compare returns a negative number if v is lower than w, a positive one if v is higher, and 0 if
// they are equal.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

// String returns major.minor.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// AppendVersion appends a value of LabelVersion.
func AppendVersion(b []byte, v Version) []byte {
	b = binary.BigEndian.AppendUint32(b, v.Major)
	return binary.BigEndian.AppendUint32(b, v.Minor)
}

// ParseVersion reads b[:VersionSize]. It panics if b is shorter.
func ParseVersion(b []byte) Version {
	_ = b[VersionSize-1]
	return Version{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}
