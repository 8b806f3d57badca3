package play

import (
	"slices"

	"github.com/openimpi/impi/internal/conformance/iut"
)

// takeAll waits for the same answer at all clients.
func takeAll(ms []*member, l label, mask uint32, values []byte) {
	for _, m := range ms {
		m.takes(l, mask, values)
	}
}

func fullServer(t *T) {
	s, ms := t.members(32)
	var want []byte
	for i, m := range slices.Backward(ms) {
		m.submits(cNProcs, u32(uint32(i)))
	}
	for i := range ms {
		want = append(want, u32(uint32(i))...)
	}
	takeAll(ms, cNProcs, 0xffffffff, want)
	ms[30].submits(pPID, u64(30))
	for i, m := range ms {
		if i != 30 {
			m.submits(0x4000, []byte{byte(i)})
		}
	}
	ms[30].submits(0x4000, []byte{30})
	takeAll(ms, pPID, 1<<30, u64(30))
	for i := range ms {
		want[i] = byte(i)
	}
	takeAll(ms, 0x4000, 0xffffffff, want[:32])
	s.end(ms)
}

func pipelining(t *T) {
	s := t.serve(2, iut.Auth{None: true})
	a, b := s.connect(0), s.connect(1)
	all := record{cmdAuth, u32(1)}.bytes()
	all = append(all, record{cmdIMPI, u32(0)}.bytes()...)
	for _, x := range labels {
		all = append(all, coll(x.label, u32(uint32(x.label))).bytes()...)
	}
	a.send("AUTH, IMPI, 14 labels and DONE", append(all, record{cmd: cmdDone}.bytes()...))
	equal(t, "the mechanism", uint32s(a.read(8, "the answer to AUTH"))[0], authNone)
	b.auth(1)
	b.joins(1)
	a.takesSize(2)
	b.takesSize(2)
	for _, x := range labels {
		b.submits(x.label, u32(1))
		takeAll([]*member{a, b}, x.label, 3, u32(uint32(x.label), 1))
	}
	b.done()
	a.takesDone()
	b.takesDone()
}

func byteByByte(t *T) {
	s := t.serve(1, iut.Auth{Key: aKey})
	m := s.connect(0)
	pieces := func(what string, b []byte) {
		t.trace.add("-> %s: %s, byte by byte", m.name, what)
		t.must(inPieces(m.tcp, b, 1))
	}
	pieces("AUTH", record{cmdAuth, u32(1 << authKey)}.bytes())
	equal(t, "the mechanism", uint32s(m.read(8, "the answer to AUTH"))[0], authKey)
	pieces("key", u64(aKey))
	pieces("IMPI 0", record{cmdIMPI, u32(0)}.bytes())
	m.takesSize(1)
	pieces("COLL", coll(cNHosts, u32(7)).bytes())
	m.takes(cNHosts, 1, u32(7))
	m.send("COLL twice and DONE in one piece", slices.Concat(coll(cNProcs, u32(1)).bytes(), coll(cDataLen, u32(2)).bytes(), record{cmd: cmdDone}.bytes()))
	m.takes(cNProcs, 1, u32(1))
	m.takes(cDataLen, 1, u32(2))
	m.takesDone()
	m.fini()
	m.close()
	s.run.succeeds()
}

func largeValues(t *T) {
	s, ms := t.members(2)
	var want []byte
	for i, m := range ms {
		v := slices.Repeat([]byte{byte(i), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 4096)
		m.submits(pIPv6, v)
		want = append(want, v...)
	}
	takeAll(ms, pIPv6, 3, want)
	s.end(ms)
}
