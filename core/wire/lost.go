package wire

import "encoding/binary"

// Lost describes which procs of a job are lost, and why. It is the data of PkLost.
type Lost struct {
	First, Last WorldRank
	Host        bool   // they are lost with their host, and are all procs of it
	Status      uint32 // of a proc that has ended, as a shell would report it; 0: unknown
	Text        string
}

// lostSize is the size of Lost on the wire, without the text.
const lostSize = 16

// lostHost is set in the third number if Host is.
const lostHost = 1

// MaxLost is the most bytes that PkLost carries.
const MaxLost = lostSize + MaxFail

// AppendLost appends the data of PkLost, with the first MaxFail bytes of the text.
func AppendLost(b []byte, l Lost) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(l.First))
	b = binary.BigEndian.AppendUint32(b, uint32(l.Last))
	flags := uint32(0)
	if l.Host {
		flags = lostHost
	}
	b = binary.BigEndian.AppendUint32(b, flags)
	b = binary.BigEndian.AppendUint32(b, l.Status)
	return append(b, l.Text[:min(len(l.Text), MaxFail)]...)
}

// ParseLost parses the bytes that AppendLost has written, for a job of procs procs. ok is false if
// it names procs that do not exist.
func ParseLost(b []byte, procs int) (l Lost, ok bool) {
	if len(b) < lostSize || len(b) > MaxLost {
		return l, false
	}
	first, last := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if first > last || uint64(last) >= uint64(procs) {
		return l, false
	}
	return Lost{
		First: WorldRank(first), Last: WorldRank(last), Host: binary.BigEndian.Uint32(b[8:])&lostHost != 0,
		Status: binary.BigEndian.Uint32(b[12:]), Text: string(b[lostSize:]),
	}, true
}
