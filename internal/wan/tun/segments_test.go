package tun

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// flow makes a datagram that is not cut: headers, and payload that counts.
func flow(offload byte, payload, cut int) *datagram {
	above := 20 + 32 // with an option of TCP
	if offload == offloadUDP {
		above = 20 + 8
	}
	d := &datagram{data: make([]byte, headSize+above+payload)}
	d.data[0], d.data[1] = flagPartial, offload
	binary.NativeEndian.PutUint16(d.data[4:], uint16(cut))
	packet := d.data[headSize:]
	packet[0], packet[8], packet[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	binary.BigEndian.PutUint16(packet[4:], 65534) // its number, which wraps
	copy(packet[12:], []byte{10, 78, 0, 1, 10, 78, 0, 2})
	if offload == offloadUDP {
		packet[9] = 17
		binary.BigEndian.PutUint16(packet[24:], uint16(8+payload))
	} else {
		binary.BigEndian.PutUint32(packet[24:], 0xffffff00) // sequence, which wraps
		packet[32], packet[33] = 8<<4, 0x80|0x10|8|1        // CWR, ACK, PSH, FIN
	}
	for i := range payload {
		packet[above+i] = byte(i >> 3)
	}
	return d
}

// whole reports whether the sum of words is right once the part above IP is added, as receivers do.
func whole(packet []byte) bool {
	ip := fold(sum(0, packet[:20]))
	return ip == 0xffff
}

func TestSpan(t *testing.T) {
	const cut, payload = 1000, 4500
	for _, offload := range []byte{offloadTCP4, offloadUDP} {
		d := flow(offload, payload, cut)
		if !d.parse() || d.packets() != 5 || d.size(0) != d.above+cut || d.size(4) != d.above+500 {
			t.Fatalf("offload %d: %d packets of %d and %d bytes", offload, d.packets(), d.size(0), d.size(4))
		}
		into := make([]byte, len(d.data))
		if !bytes.Equal(d.span(into, 0, 5), d.data) {
			t.Errorf("offload %d: the whole is another one", offload)
		}
		var all []byte
		for _, s := range [][2]int{{0, 2}, {2, 3}, {3, 5}} {
			b := d.span(into, s[0], s[1])
			packet := b[headSize:]
			all = append(all, packet[d.above:]...)
			if single := s[1]-s[0] == 1; (b[1] == offloadNone) != single || (binary.NativeEndian.Uint16(b[4:]) == 0) != single {
				t.Errorf("offload %d: packets %d: head % x", offload, s, b[:headSize])
			}
			if b[0] != flagPartial || !whole(packet) || int(binary.BigEndian.Uint16(packet[2:])) != len(packet) {
				t.Errorf("offload %d: packets %d: header of IP % x", offload, s, packet[:20])
			}
			if id := binary.BigEndian.Uint16(packet[4:]); id != uint16(65534+s[0]) {
				t.Errorf("offload %d: packets %d: number %d", offload, s, id)
			}
			transport := packet[20:]
			checksum := transport[16:]
			if offload == offloadUDP {
				checksum = transport[6:]
				if n := int(binary.BigEndian.Uint16(transport[4:])); n != len(transport) {
					t.Errorf("packets %d: UDP's length is %d of %d", s, n, len(transport))
				}
			} else {
				first, last := s[0] == 0, s[1] == 5
				flags := transport[13]
				if binary.BigEndian.Uint32(transport[4:]) != 0xffffff00+uint32(s[0]*cut) || (flags&0x80 != 0) != first || (flags&9 == 9) != last || (flags&9 != 0) != last {
					t.Errorf("packets %d: header of TCP % x", s, transport[:20])
				}
			}
			// The pseudo header: addresses, protocol and length.
			pseudo := append(bytes.Clone(packet[12:20]), 0, packet[9], byte(len(transport)>>8), byte(len(transport)))
			if got, want := binary.BigEndian.Uint16(checksum), fold(sum(0, pseudo)); got != want {
				t.Errorf("offload %d: packets %d: sum %x, want %x", offload, s, got, want)
			}
		}
		if !bytes.Equal(all, d.data[headSize+d.above:]) {
			t.Errorf("offload %d: the parts are not the whole", offload)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	good := func() *datagram { return flow(offloadTCP4, 3000, 1000) }
	for name, spoil := range map[string]func(d *datagram){
		"nothing":           func(d *datagram) { d.data = d.data[:headSize] },
		"IPv6":              func(d *datagram) { d.data[headSize] = 0x60 },
		"no cut":            func(d *datagram) { clear(d.data[4:6]) },
		"unknown":           func(d *datagram) { d.data[1] = 3 },
		"headers alone":     func(d *datagram) { d.data = d.data[:headSize+52] },
		"half a header":     func(d *datagram) { d.data = d.data[:headSize+30] },
		"a short IP header": func(d *datagram) { d.data[headSize] = 0x41 },
		"a long TCP header": func(d *datagram) { d.data = d.data[:headSize+60]; d.data[headSize+32] = 0xf0 },
	} {
		d := good()
		if spoil(d); d.parse() {
			t.Errorf("%s is accepted", name)
		}
	}
	if d := good(); !d.parse() {
		t.Error("a good one is refused")
	}
}
