package tun

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/wan"
	"golang.org/x/sys/unix"
)

// What is lost, doubled and late of datagrams that are not cut is single packets, and each of the
// others is written once. The ports are sockets here.
func TestDeliverWritesEachPacketOnce(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	line := wan.NewLine[packet](wan.Shape{Rate: 1e9, Delay: time.Millisecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, ReorderDelay: 50 * time.Microsecond}, 1)
	n := &Network{
		ports:     []int{-1, pair[0]},
		byAddress: map[uint32]int{10<<24 | 78<<16 | 2: 1},
		lines:     [][]*wan.Line[packet]{{nil, line}, {nil, nil}},
	}
	const datagrams, each = 100, 40
	var seen [datagrams * each]int
	total, writes := 0, 0
	now := time.Duration(0)
	buffer := make([]byte, headSize+maxPacket)
	drain := func() {
		if err := n.deliver(1, line, now); err != nil {
			t.Fatal(err)
		}
		for {
			size, err := unix.Read(pair[1], buffer)
			if err != nil {
				break
			}
			d := &datagram{data: buffer[:size]}
			if !d.parse() {
				t.Fatalf("% x was written", buffer[:min(size, 64)])
			}
			first := (binary.BigEndian.Uint32(buffer[headSize+24:]) - 0xffffff00) / 1000
			for i := range d.packets() {
				seen[int(first)+i]++
				total++
			}
			writes++
		}
	}
	for i := range datagrams {
		d := flow(offloadTCP4, 1000*each, 1000)
		sequence := d.data[headSize+24:]
		binary.BigEndian.PutUint32(sequence, binary.BigEndian.Uint32(sequence)+uint32(1000*each*i))
		n.offer(0, d.data, now)
		now += 100 * time.Microsecond
		drain()
	}
	for at, ok := line.Next(); ok; at, ok = line.Next() {
		now = at + 100*time.Microsecond
		drain()
	}
	c := line.Counts()
	if want := int(c.Offered - c.Lost + c.Duplicated); c.Offered != datagrams*each || total != want || writes >= total {
		t.Errorf("%d packets in %d writes, of %+v", total, writes, c)
	}
	var never, twice int
	for i, k := range seen {
		switch k {
		case 0:
			never++
		case 1:
		case 2:
			twice++
		default:
			t.Errorf("packet %d was written %d times", i, k)
		}
	}
	if never != int(c.Lost) || twice != int(c.Duplicated) {
		t.Errorf("%d packets never came and %d twice, of %+v", never, twice, c)
	}
	free := 0
	for d := n.free[len(classes)-1]; d != nil; d = d.next {
		if free++; d.left != 0 || free > datagrams {
			t.Fatalf("a free datagram has %d packets left, number %d", d.left, free)
		}
	}
	if free == 0 || free == datagrams {
		t.Errorf("%d of %d datagrams have memory of their own", free, datagrams)
	}
}
