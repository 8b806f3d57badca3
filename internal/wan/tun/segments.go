package tun

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// The header before each IP packet of a device: struct virtio_net_hdr, in the byte order of this
// machine.
const (
	headSize = 10

	flagPartial = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum covers the pseudo header alone so far

	offloadNone = 0
	offloadTCP4 = 1 // VIRTIO_NET_HDR_GSO_TCPV4
	offloadUDP  = 5 // VIRTIO_NET_HDR_GSO_UDP_L4
)

// maxPacket is the most bytes that one read of a device returns: an IPv4 packet.
const maxPacket = 65535

// offloads is the work that the kernel may leave to devices: checksums, and cutting what a socket
// has sent at once into packets. Without it each packet of a stream would take two system calls and
// its own way through two stacks, which is 300 Mb/s on two cores.
const (
	offloads    = unix.TUN_F_CSUM | unix.TUN_F_TSO4
	offloadsUDP = offloads | unix.TUN_F_USO4 | unix.TUN_F_USO6 // Linux 6.2
)

// datagram is what one read of a device returns: an IP packet, or several of a flow that the kernel
// has not cut yet, with one header.
type datagram struct {
	next  *datagram // next in the list of free ones
	left  int       // number of its packets that are still to be written
	class int       // of its memory
	data  []byte    // virtio header and IP packet
	cut   int       // payload bytes of each packet except the last; 0: it is one packet
	above int       // bytes of the headers of IP and TCP or UDP, if the packet is to be cut
}

func (d *datagram) packets() int {
	if d.cut == 0 {
		return 1
	}
	return max(1, (len(d.data)-headSize-d.above+d.cut-1)/d.cut)
}

// size returns how many bytes a packet of it has on the wire.
func (d *datagram) size(i int) int {
	if d.cut == 0 {
		return len(d.data) - headSize
	}
	return d.above + min(d.cut, len(d.data)-headSize-d.above-i*d.cut)
}

// parse finds out how a datagram is to be cut; ok is false if it is none of IPv4, or none that can
// be.
func (d *datagram) parse() (ok bool) {
	packet := d.data[headSize:]
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return false
	}
	ip := int(packet[0]&15) * 4
	d.cut, d.above = int(binary.NativeEndian.Uint16(d.data[4:])), 0
	switch d.data[1] {
	case offloadNone:
		d.cut = 0
		return true
	case offloadTCP4:
		if len(packet) < ip+20 {
			return false
		}
		d.above = ip + int(packet[ip+12]>>4)*4
	case offloadUDP:
		d.above = ip + 8
	default:
		return false
	}
	return d.cut > 0 && ip >= 20 && len(packet) > d.above
}

// span writes packets from..to of a datagram into memory of at least its size, as one that the
// kernel has not cut, or as a single packet.
func (d *datagram) span(into []byte, from, to int) []byte {
	if d.cut == 0 || from == 0 && to == d.packets() {
		return d.data
	}
	begin := headSize + d.above + from*d.cut
	end := min(len(d.data), headSize+d.above+to*d.cut)
	n := copy(into, d.data[:headSize+d.above])
	into = into[:n+copy(into[n:], d.data[begin:end])]
	if to-from == 1 {
		into[1] = offloadNone
		clear(into[2:6])
	}
	packet := into[headSize:]
	ip := int(packet[0]&15) * 4
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	binary.BigEndian.PutUint16(packet[4:], binary.BigEndian.Uint16(packet[4:])+uint16(from))
	packet[10], packet[11] = 0, 0
	binary.BigEndian.PutUint16(packet[10:], ^fold(sum(0, packet[:ip])))
	above := packet[ip:]
	checksum := above[16:]
	if d.data[1] == offloadUDP {
		binary.BigEndian.PutUint16(above[4:], uint16(len(above)))
		checksum = above[6:]
	} else {
		binary.BigEndian.PutUint32(above[4:], binary.BigEndian.Uint32(above[4:])+uint32(from*d.cut))
		const fin, push, reduced = 1, 8, 0x80
		if to < d.packets() {
			above[13] &^= fin | push
		}
		if from > 0 {
			above[13] &^= reduced
		}
	}
	// The kernel adds what is above IP, or trusts it.
	binary.BigEndian.PutUint16(checksum, fold(sum(uint64(packet[9])+uint64(len(above)), packet[12:20])))
	return into
}

// sum adds words of 16 bits, of an even number of bytes.
func sum(s uint64, words []byte) uint64 {
	for ; len(words) >= 2; words = words[2:] {
		s += uint64(binary.BigEndian.Uint16(words))
	}
	return s
}

// fold makes a sum of 16 bits, in ones' complement.
func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
