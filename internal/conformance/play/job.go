package play

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/openimpi/impi/internal/conformance/iut"
)

// place is where the IUT stands among the clients.
type place int

// The positions of the IUT. Last means that it connects to all hosts, first that all connect to it.
const (
	last place = iota
	first
	middle
)

// setup says what job a case wants. The zero value is two clients, the tester's one
// with two procs and then the IUT with one.
type setup struct {
	place    place
	iutHosts []int   // procs of each host of the IUT; default: one host, one proc
	others   [][]int // procs of each host of each of the tester's clients; default: {{2}}

	datalen, ackmark, hiwater uint32 // values that the tester's clients submit; default: 1000, 10, 20
	tagub                     int32  // default: 2^31-1
	xsize, maxlinear          int32  // default: the IUT's values
	iutMaxLinear              int32  // value that the IUT should submit; default: its own
	versions                  [][2]uint32
	mapped                    bool // host IDs of the tester are IPv4-mapped; default: IPv4-compatible
	pieces                    bool // the server sends byte by byte

	auth    iut.Auth // mechanisms that the tester's server accepts; default: NONE
	iutAuth iut.Auth // mechanisms that the IUT gets; default: the same

	// answers changes the server's answer to a label: mask and values of all.
	answers func(l label, mask uint32, values []byte) (uint32, []byte)
	// before may send other data right before the answer to l; before the answer to DONE, l is 0.
	before func(c *conn, l label)
}

type client struct {
	rank   int
	iut    bool
	hosts  []*host
	values map[label][]byte // submitted values
	omits  map[label]bool   // labels to leave out
}

type host struct {
	rank   int
	client *client
	addr   netip.Addr
	port   uint16
	id     [16]byte // H_IPV6
	procs  []*proc
	listen *listener // for hosts of the tester
}

type proc struct {
	rank int // in MPI_COMM_WORLD
	host *host
	id   procID
}

type layout struct {
	t       *T
	setup   setup
	clients []*client
	hosts   []*host
	procs   []*proc // by world rank, once startup is over
	self    *client // the IUT's client
}

// terms are what startup settles.
type terms struct {
	datalen, ackmark, hiwater uint32
	tagub                     int32
	xsize, maxlinear          int32
}

// job is a job of the tester and the IUT: who is in it, the server that the tester plays,
// and the channels of the tester's hosts with those of the IUT.
type job struct {
	server
	channels []*channel
	control  *control
}

func (s *setup) defaults() {
	if s.iutHosts == nil {
		s.iutHosts = []int{1}
	}
	if s.others == nil {
		s.others = [][]int{{2}}
	}
	s.datalen, s.ackmark, s.hiwater = cmp.Or(s.datalen, 1000), cmp.Or(s.ackmark, 10), cmp.Or(s.hiwater, 20)
	s.tagub = cmp.Or(s.tagub, 1<<31-1)
	if s.versions == nil {
		s.versions = [][2]uint32{{0, 0}}
	}
	if s.auth == (iut.Auth{}) {
		s.auth = iut.Auth{None: true}
	}
	if s.iutAuth == (iut.Auth{}) {
		s.iutAuth = s.auth
	}
}

// newJob makes the tester's side: its server and its hosts listen.
func (t *T) newJob(s setup) *job {
	s.defaults()
	if len(s.iutHosts) > 1 && !t.subject.Hosts() {
		t.Skipf("the IUT has one host in each client")
	}
	j := &job{server: server{layout: layout{t: t, setup: s}}}
	at := map[place]int{first: 0, middle: min(1, len(s.others)), last: len(s.others)}[s.place]
	others := slices.Clone(s.others)
	shapes := slices.Insert(others, at, s.iutHosts)
	for rank, hosts := range shapes {
		c := &client{rank: rank, iut: rank == at, values: map[label][]byte{}}
		for _, procs := range hosts {
			j.addHost(c, procs)
		}
		j.clients = append(j.clients, c)
		if c.iut {
			j.self = c
		}
	}
	for _, c := range j.clients {
		if !c.iut {
			j.submit(c)
		}
	}
	j.listener = t.listen(loopback(1))
	j.control = newControl(j)
	return j
}

func loopback(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, byte(n >> 8), byte(n)}) }

func hostID(a netip.Addr, mapped bool) (id [16]byte) {
	if a.Is6() && !a.Is4In6() {
		return a.As16()
	}
	v4 := a.Unmap().As4()
	copy(id[12:], v4[:])
	if mapped {
		id[10], id[11] = 0xff, 0xff
	}
	return id
}

// join does what every case of messages begins with: a job in which all channels are
// there and the IUT's program waits for commands.
func (t *T) join(s setup) *job {
	j := t.newJob(s)
	j.launch()
	j.startup()
	j.dance()
	return j
}

func uint32s(b []byte) (v []uint32) {
	for ; len(b) >= 4; b = b[4:] {
		v = append(v, binary.BigEndian.Uint32(b))
	}
	return v
}

// uint8s reads values of 8 bytes.
func uint8s(b []byte) (v []uint64) {
	for ; len(b) >= 8; b = b[8:] {
		v = append(v, binary.BigEndian.Uint64(b))
	}
	return v
}

// addHost adds the next host. Each has an address of its own: LAM tells hosts apart by
// nothing else.
func (l *layout) addHost(c *client, procs int) {
	h := &host{rank: len(l.hosts), client: c, addr: loopback(2 + len(l.hosts))}
	h.id = hostID(h.addr, l.setup.mapped)
	if !c.iut {
		h.listen = l.t.listen(h.addr)
		h.port = h.listen.addr.Port()
	}
	for i := range procs {
		h.procs = append(h.procs, &proc{host: h, id: procID{h.id, int64(1000*(h.rank+1) + i)}})
	}
	c.hosts = append(c.hosts, h)
	l.hosts = append(l.hosts, h)
}

func (l *layout) submit(c *client) {
	s, v := &l.setup, c.values
	for _, x := range s.versions {
		v[cVersion] = append(v[cVersion], u32(x[0], x[1])...)
	}
	n := 0
	for _, h := range c.hosts {
		n += len(h.procs)
		v[hIPv6] = append(v[hIPv6], h.id[:]...)
		v[hPort] = append(v[hPort], u32(uint32(h.port))...)
		v[hNProcs] = append(v[hNProcs], u32(uint32(len(h.procs)))...)
		v[hAckMark] = append(v[hAckMark], u32(s.ackmark)...)
		v[hHiWater] = append(v[hHiWater], u32(s.hiwater)...)
		for _, p := range h.procs {
			v[pIPv6] = append(v[pIPv6], p.id.host[:]...)
			v[pPID] = append(v[pPID], u64(uint64(p.id.pid))...)
		}
	}
	v[cNHosts], v[cNProcs] = u32(uint32(len(c.hosts))), u32(uint32(n))
	v[cDataLen], v[cTagUB] = u32(s.datalen), u32(uint32(s.tagub))
	if s.xsize != 0 {
		v[cXSize] = u32(uint32(s.xsize))
	}
	if s.maxlinear != 0 {
		v[cMaxLinear] = u32(uint32(s.maxlinear))
	}
}

// iut returns the i-th proc of the IUT, peer the i-th of the tester. The tester's last
// proc of its first client gives commands; scripts leave it alone.
func (l *layout) iut(i int) *proc { return l.nth(i, true) }

func (l *layout) peer(i int) *proc { return l.nth(i, false) }

func (l *layout) nth(i int, iut bool) *proc {
	for _, p := range l.procs {
		if p.host.client.iut == iut {
			if i == 0 {
				return p
			}
			i--
		}
	}
	panic("protocol: no such proc in this setup")
}

// higher returns the IUT's hosts that must connect to h.
func (l *layout) higher(h *host) (all []*host) {
	for _, p := range l.self.hosts {
		if p.rank > h.rank {
			all = append(all, p)
		}
	}
	return all
}
