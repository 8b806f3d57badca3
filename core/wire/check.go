package wire

import (
	"errors"
	"fmt"
	"math"
)

// TagOutOfRange is what decoding gives for a draft tag that does not fit into
// 32 bits. No receive can ask for it.
const TagOutOfRange Tag = math.MinInt32

// Faults of a packet header.
var (
	ErrPacketType = errors.New("unknown pk_type")
	ErrPacketLen  = errors.New("pk_len is too large")
	ErrPacketTag  = errors.New("pk_tag does not fit into 32 bits")
)

// CheckHeader tells what is wrong with a header as far as it can be seen
// without knowing the procs; maxData is the job's largest C_DATALEN.
//
// Only PkData and PkDataSync have fields that are checked. IMPI ch.3, Packet
// Format: the others have no user data, and real peers leave anything in the
// fields that a type does not use, pk_len included.
func CheckHeader(p *Packet, maxData uint32) error {
	switch {
	case !p.Type.Known():
		return fmt.Errorf("%w %d: the stream cannot be followed any further", ErrPacketType, uint32(p.Type))
	case !p.Type.HasData():
		return nil
	case p.Len > maxData:
		return fmt.Errorf("%w: %d, the job's largest is %d, in %v", ErrPacketLen, p.Len, maxData, p)
	case uint64(p.Len) > p.MsgLen:
		return fmt.Errorf("%w: %d in a message of %d bytes, in %v", ErrPacketLen, p.Len, p.MsgLen, p)
	case p.Tag == TagOutOfRange:
		return fmt.Errorf("%w, in %v", ErrPacketTag, p)
	}
	return nil
}
