package protocol

import (
	"encoding/binary"
	"fmt"
)

// record is a message between client and server that has a header.
type record struct {
	cmd  command
	data []byte
}

const recordHeader = 8

func (r record) bytes() []byte {
	return append(rawHeader(r.cmd, int32(len(r.data))), r.data...)
}

// rawHeader is the header of a record, whatever follows.
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

// answer is what the server makes of it.
func answer(l label, mask uint32, values []byte) record {
	return record{cmdColl, append(u32(uint32(l), mask), values...)}
}
