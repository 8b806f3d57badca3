package play

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// dance sets up the channels between each host of the tester and each of the IUT.
// Tester hosts do not talk to each other.
func (j *job) dance() {
	j.takeDials()
	j.makeDials()
}

// takeDials accepts the IUT's connections to the tester's hosts of lower rank.
func (j *job) takeDials() {
	for _, h := range j.hosts {
		if h.client.iut {
			continue
		}
		for range j.higher(h) {
			j.acceptHost(h)
		}
	}
}

func (j *job) acceptHost(h *host) *channel {
	c := h.listen.accept("a host of the IUT that connects to our host")
	rank := binary.BigEndian.Uint32(c.read(4, "the host's rank"))
	j.t.trace.add("<- %s %d: it is host %d", c.name, h.rank, rank)
	i := slices.IndexFunc(j.higher(h), func(p *host) bool { return uint32(p.rank) == rank })
	if i < 0 {
		j.t.Fatalf("a host that says it is host %d connected to host %d", rank, h.rank)
	}
	from := j.higher(h)[i]
	if j.between(h, from) != nil {
		j.t.Fatalf("host %d connected to host %d twice", rank, h.rank)
	}
	return j.addChannel(c, h, from)
}

// makeDials connects to the IUT's hosts of lower rank.
func (j *job) makeDials() {
	for _, h := range j.hosts {
		for _, to := range j.self.hosts {
			if !h.client.iut && to.rank < h.rank {
				j.dialHost(h, to)
			}
		}
	}
}

// dialHost connects host h of the tester to one of the IUT, and says which it is. Packets may
// follow in the same write.
func (j *job) dialHost(h, to *host, behind ...packet) {
	c, b := j.connect(h, to), u32(uint32(h.rank))
	for i := range behind {
		b = append(b, behind[i].bytes()...)
	}
	c.send(fmt.Sprintf("host rank, and %d packets", len(behind)), b)
	ch := j.addChannel(c, h, to)
	for i := range behind {
		ch.counts(&behind[i])
	}
}

// connect connects to a host of the IUT and sends nothing.
func (j *job) connect(h, to *host) *conn {
	return j.t.dial("host of the IUT", h.addr, netip.AddrPortFrom(to.address(), to.port))
}

func (h *host) address() netip.Addr { return addressOf(h.id) }

// addressOf reads a host ID: either embedding of IPv4, or IPv6.
func addressOf(id [16]byte) netip.Addr {
	a := netip.AddrFrom16(id)
	if [10]byte(id[:10]) == [10]byte{} && (id[10] == 0 && id[11] == 0 || id[10] == 0xff && id[11] == 0xff) {
		return netip.AddrFrom4([4]byte(id[12:]))
	}
	return a
}

func (j *job) between(a, b *host) *channel {
	for _, ch := range j.channels {
		if ch.local == a && ch.remote == b || ch.local == b && ch.remote == a {
			return ch
		}
	}
	return nil
}
