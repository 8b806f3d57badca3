package check

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Labels whose values follow from the job, or that are checked.
const (
	labelVersion = 0x1000
	labelNHosts  = 0x1100
	labelNProcs  = 0x1200
	labelDatalen = 0x1300
	labelHNProcs = 0x2200
	labelAckmark = 0x2300
	labelHiwater = 0x2400
	labelPIPv6   = 0x3000
	labelPPID    = 0x3100
)

// Scopes: whether a label has one value for each client, host or proc.
const (
	perClient = iota
	perHost
	perProc
)

// labels are those of IMPI 0.0. IMPI ch.2, Collection of startup information.
var labels = [...]struct {
	label uint32
	name  string
	scope int
	width int64 // bytes of a value
}{
	{labelVersion, "C_VERSION", perClient, 8},
	{labelNHosts, "C_NHOSTS", perClient, 4},
	{labelNProcs, "C_NPROCS", perClient, 4},
	{labelDatalen, "C_DATALEN", perClient, 4},
	{0x1400, "C_TAGUB", perClient, 4},
	{0x1500, "C_COLL_XSIZE", perClient, 4},
	{0x1600, "C_COLL_MAXLINEAR", perClient, 4},
	{0x2000, "H_IPV6", perHost, 16},
	{0x2100, "H_PORT", perHost, 4},
	{labelHNProcs, "H_NPROCS", perHost, 4},
	{labelAckmark, "H_ACKMARK", perHost, 4},
	{labelHiwater, "H_HIWATER", perHost, 4},
	{labelPIPv6, "P_IPV6", perProc, 16},
	{labelPPID, "P_PID", perProc, 8},
}

// privateVersion is what our clients list beside 0.0, as a value of C_VERSION.
const privateVersion = 0x10001

// lostVersion is listed by clients to which the server sends, by labelLost, which clients it has
// lost.
const (
	lostVersion = 0x10005
	labelLost   = 0x49000001
)

func standard(label uint32) (i int, ok bool) {
	for i := range labels {
		if labels[i].label == label {
			return i, true
		}
	}
	return 0, false
}

func labelName(label uint32) string {
	if i, ok := standard(label); ok {
		return labels[i].name
	}
	return fmt.Sprintf("label 0x%x", label)
}

type submissions struct {
	of      [maxClients]submission
	least   uint32 // smallest of all values, if they are integers of 4 bytes
	private uint32 // mask of the clients whose versions have the private one
	hears   uint32 // mask of the clients with lostVersion
}

type submission struct {
	read bool // by the server
	size int64
	crc  uint32
}

func (c *Checker) submissions(label uint32) *submissions {
	s := c.labels[label]
	if s == nil {
		s = &submissions{least: ^uint32(0)}
		c.labels[label] = s
	}
	return s
}

// nextLabel returns the lowest label above one that the server has read from any client.
func (c *Checker) nextLabel(above uint32) (next uint32, ok bool) {
	for label, s := range c.labels {
		if label <= above || ok && label >= next {
			continue
		}
		for i := range s.of {
			if s.of[i].read {
				next, ok = label, true
			}
		}
	}
	return next, ok
}

func (c *Checker) describeClients() {
	for h := range c.hosts {
		k := &c.clients[c.hosts[h].Client]
		k.hosts = append(k.hosts, h)
		k.foreign = k.foreign || c.hosts[h].Foreign
		k.counts[perHost]++
		k.counts[perProc] += len(c.hosts[h].procs)
	}
	for i := range c.clients {
		k := &c.clients[i]
		k.counts[perClient] = 1
		var nprocs, ids, pids []byte
		for _, h := range k.hosts {
			nprocs = binary.BigEndian.AppendUint32(nprocs, uint32(len(c.hosts[h].procs)))
			for _, r := range c.hosts[h].procs {
				id := &c.job.Procs[r].Identity
				ids, pids = append(ids, id[:16]...), append(pids, id[16:]...)
			}
		}
		k.expect = map[uint32]uint32{
			labelNHosts:  checksum(binary.BigEndian.AppendUint32(nil, uint32(len(k.hosts)))),
			labelNProcs:  checksum(binary.BigEndian.AppendUint32(nil, uint32(k.counts[perProc]))),
			labelHNProcs: checksum(nprocs),
			labelPIPv6:   checksum(ids),
			labelPPID:    checksum(pids),
		}
	}
}

func checksum(b []byte) uint32 { return crc32.Update(0, table, b) }

func (t *commandStream) submits(s *stream) error {
	k, label := t.client, t.now.value
	if label <= k.last {
		return t.wrongLabel(s, "labels ascend, and the one before was %s", labelName(k.last))
	}
	k.last = label
	i, ok := standard(label)
	if !ok {
		return t.extends(s)
	}
	k.labels++
	l := labels[i]
	want := 4 + l.width*int64(k.counts[l.scope])
	if label == labelVersion && t.now.size > want && (t.now.size-4)%l.width == 0 {
		want = t.now.size // one or more
	}
	if t.now.size != want {
		return t.wrongLabel(s, "it has %d bytes, and should have %d", t.now.size, want)
	}
	return nil
}

// extends judges a label beyond IMPI 0.0. Our clients send one only if every client has listed the
// private version, because some clients fail at unknown labels. Foreign clients may send any; they
// are passed on.
func (t *commandStream) extends(s *stream) error {
	c := s.c
	all := uint32(uint64(1)<<len(c.clients) - 1)
	if t.client.foreign {
		return nil
	}
	if got := c.submissions(labelVersion).private; got != all {
		return t.wrongLabel(s, "it is not of IMPI 0.0, and the clients that list the private version are %b", got)
	}
	if t.client.answered < labelVersion {
		return t.wrongLabel(s, "it is not of IMPI 0.0, and the others' versions have not come")
	}
	return nil
}

func (t *commandStream) submitted(s *stream) error {
	k, label := t.client, t.now.value
	sub := s.c.submissions(label)
	of := &sub.of[k.rank]
	of.size, of.crc = t.now.size-4, t.crc
	values := t.payload[4:]
	if want, ok := k.expect[label]; ok && want != t.crc {
		return t.wrongLabel(s, "its values are not those of the job")
	}
	switch label {
	case labelVersion:
		return t.versions(s, sub, values)
	case labelDatalen, labelAckmark, labelHiwater:
		for ; len(values) >= 4; values = values[4:] {
			sub.least = min(sub.least, binary.BigEndian.Uint32(values))
		}
	}
	return nil
}

// versions judges a list of versions. IMPI ch.2, Client labels: 0.0 first, then any others in
// strictly ascending order.
func (t *commandStream) versions(s *stream, sub *submissions, list []byte) error {
	for i := 0; i+8 <= len(list); i += 8 {
		v := binary.BigEndian.Uint64(list[i:])
		if i == 0 && v != 0 || i > 0 && v <= binary.BigEndian.Uint64(list[i-8:]) {
			return t.wrongLabel(s, "versions ascend from 0.0, number %d is %d.%d", i/8, v>>32, uint32(v))
		}
		if v == privateVersion {
			sub.private |= 1 << t.client.rank
		}
		if v == lostVersion {
			sub.hears |= 1 << t.client.rank
		}
	}
	return nil
}

func (m *command) line() string {
	switch m.cmd {
	case cmdChoice:
		return "answer to AUTH"
	case cmdKey:
		return "key"
	case cmdOther:
		return "unknown command"
	case cmdColl:
		if m.value != 0 {
			return fmt.Sprintf("COLL %s len=%d", labelName(m.value), m.size)
		}
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], m.cmd)
	return fmt.Sprintf("%q len=%d", b, m.size)
}
