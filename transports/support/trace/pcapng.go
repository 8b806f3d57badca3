package trace

import (
	"encoding/binary"
	"strings"
	"time"
)

// The blocks and options of a pcapng file (IETF draft-ietf-opsawg-pcapng, "Section Header Block",
// "Interface Description Block", "Enhanced Packet Block") that a capture uses. Everything is
// little-endian, as the section header says. There is no library for this here: a packet's bytes
// are appended to its block as they pass, while a writer of packets needs each one whole.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6

	byteOrder = 0x1a2b3c4d

	optComment     = 1 // of any block
	optApplication = 4 // of a section
	optName        = 2 // of an interface
	optDescription = 3
	optResolution  = 9
	optFlags       = 2 // of a packet

	// linkUser0 is the first of the link types that are free for private use.
	linkUser0 = 147

	inbound  = 1 // of a packet's flags
	outbound = 2
)

// packetHead is what comes before a packet's bytes in its block.
const packetHead = 28

var le = binary.LittleEndian

// openBlock begins a block; its length is not known yet.
func openBlock(b []byte, typ uint32) []byte {
	return append(le.AppendUint32(b, typ), 0, 0, 0, 0)
}

// closeBlock ends the options of the block that b is, and sets both its lengths.
func closeBlock(b []byte) []byte {
	b = append(b, 0, 0, 0, 0) // end of options
	n := uint32(len(b) + 4)
	le.PutUint32(b[4:], n)
	return le.AppendUint32(b, n)
}

func appendOption(b []byte, code uint16, value []byte) []byte {
	b = le.AppendUint16(b, code)
	b = le.AppendUint16(b, uint16(len(value)))
	return pad(append(b, value...))
}

const maxText = 1000 // bytes of a name or text; longer ones are cut off

func appendText(b []byte, code uint16, text string) []byte {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return appendOption(b, code, []byte(strings.ToValidUTF8(text, "?")))
}

// pad fills up to the next multiple of four bytes: blocks and options begin there.
func pad(b []byte) []byte { return append(b, 0, 0, 0)[:(len(b)+3)&^3] }

func sectionBlock(application, comment string) []byte {
	b := openBlock(nil, blockSection)
	b = le.AppendUint32(b, byteOrder)
	b = le.AppendUint16(b, 1) // version 1.0
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, ^uint64(0)) // the section's length is not given
	b = appendText(b, optApplication, application)
	if comment != "" {
		b = appendText(b, optComment, comment)
	}
	return closeBlock(b)
}

func interfaceBlock(name, description string, snap int) []byte {
	b := openBlock(nil, blockInterface)
	b = le.AppendUint16(b, linkUser0)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, uint32(snap))
	b = appendText(b, optName, name)
	b = appendText(b, optDescription, description)
	b = appendOption(b, optResolution, []byte{9}) // nanoseconds
	return closeBlock(b)
}

// openPacket begins a packet's block. Its bytes are appended, then closePacket is
// called.
func openPacket(b []byte) []byte {
	b = openBlock(b[:0], blockPacket)
	return append(b, make([]byte, packetHead-len(b))...)
}

// closePacket completes a packet that was longer by cut bytes than what is in b.
func closePacket(b []byte, network uint32, at time.Time, cut uint64, direction uint32) []byte {
	ns, captured := uint64(at.UnixNano()), uint64(len(b)-packetHead)
	le.PutUint32(b[8:], network)
	le.PutUint32(b[12:], uint32(ns>>32))
	le.PutUint32(b[16:], uint32(ns))
	le.PutUint32(b[20:], uint32(captured))
	le.PutUint32(b[24:], uint32(min(captured+cut, 1<<32-1)))
	return closeBlock(appendOption(pad(b), optFlags, le.AppendUint32(nil, direction)))
}
