package play

import (
	"fmt"
	"math"

	"github.com/openimpi/impi/internal/conformance/iut"
)

// aKey has different bytes, and is not negative where somebody takes it for signed.
const aKey = 0x0102030405060708

func authentication(t *T, a iut.Auth, which uint32) {
	asked := func() *job {
		j := t.newJob(setup{iutAuth: a})
		j.launch()
		j.connected()
		equal(t, "the mask of AUTH", j.takeAuth(), a.Mask())
		return j
	}
	const why = "the server has not answered AUTH yet"
	asked().unanswered(why)
	j := asked()
	j.conn.silent(why)
	j.choose(which)
	if which == authKey {
		equal(t, "the key", j.takeKey(), a.Key)
	}
	j.rank()
	j.conn.expect(cmdColl, -1)
}

func lengthInAnswer(t *T) {
	for _, which := range []uint32{authNone, authKey} {
		j := t.newJob(setup{iutAuth: iut.Auth{None: true, Key: aKey}})
		j.launch()
		j.connected()
		j.takeAuth()
		j.conn.send("which len=8", u32(which, 8))
		if which == authKey {
			equal(t, "the key", j.takeKey(), uint64(aKey))
		}
		j.rank()
		j.run.kill()
	}
}

func answersInPieces(t *T) {
	j := t.newJob(setup{})
	j.launch()
	j.connected()
	j.takeAuth()
	j.pieces(u32(authNone, 0))
	j.conn.expect(cmdIMPI, 4)
	j.pieces(record{cmdIMPI, u32(2)}.bytes())
	for l := label(1); l != 0; {
		var v []byte
		if l, v = j.takeLabel(); l == 0 {
			break
		}
		j.self.values[l] = v
		mask, all := j.everybody(l)
		j.pieces(answer(l, mask, all).bytes())
	}
	j.pieces(record{cmd: cmdDone}.bytes())
	j.settle()
	j.dance()
	j.quiet("no program sends")
	j.finish()
}

func wholeJob(s setup) func(*T) {
	return func(t *T) {
		j := t.join(s)
		for _, p := range j.self.procs() {
			r := j.do(p, "info")
			r.is("rank", p.rank)
			r.is("size", len(j.procs))
		}
		j.quiet("no program sends")
		j.finish()
	}
}

func lockStep(t *T) {
	for _, l := range []label{cVersion, hPort, pPID} {
		j := t.newJob(setup{})
		j.begin()
		j.until(l)
		j.unanswered(l.String() + " has not been answered")
	}
	j := t.newJob(setup{})
	var before label
	j.setup.before = func(c *conn, l label) {
		if l != 0 && l <= before {
			t.Fatalf("%v comes after %v", l, before)
		}
		before = l
		if l == cVersion || l == hPort || l == pPID {
			c.silent(l.String() + " has not been answered")
		}
	}
	j.begin()
	j.collect()
	j.settle()
}

func atLeast(least uint32) func(*job, []byte) string {
	return func(_ *job, b []byte) string {
		for _, v := range uint32s(b) {
			if v < least {
				return fmt.Sprintf("%d is below %d", v, least)
			}
		}
		return ""
	}
}

func crossover(_ *job, b []byte) string {
	if v := int32(uint32s(b)[0]); v < -1 {
		return fmt.Sprintf("%d is negative and not -1", v)
	}
	return ""
}

// valueRules say what does not hold for the values of a label, if anything.
var valueRules = map[label]func(j *job, v []byte) string{
	cVersion:   versionRule,
	cNHosts:    atLeast(1),
	cNProcs:    func(j *job, b []byte) string { return differs(uint32s(b)[0], j.setup.iutHosts...) },
	cDataLen:   atLeast(1),
	cTagUB:     tagRule,
	cXSize:     crossover,
	cMaxLinear: crossover,
	hPort:      portRule,
	hNProcs:    func(j *job, b []byte) string { return differs(sum32(uint32s(b)), j.setup.iutHosts...) },
	hAckMark:   atLeast(1),
	hHiWater:   func(j *job, b []byte) string { return atLeast(uint32s(j.self.values[hAckMark])[0])(j, b) },
	pPID:       pidRule,
}

func versionRule(_ *job, b []byte) string {
	before, zero := -1.0, false
	for v := uint32s(b); len(v) > 1; v = v[2:] {
		x := float64(v[0])*math.Exp2(32) + float64(v[1])
		if x <= before {
			return "they do not ascend"
		}
		before, zero = x, zero || x == 0
	}
	if !zero {
		return "0.0 is not among them"
	}
	return ""
}

func tagRule(_ *job, b []byte) string {
	if v := int32(uint32s(b)[0]); v < leastTagUB {
		return fmt.Sprintf("%d is below %d", v, leastTagUB)
	}
	return ""
}

func portRule(_ *job, b []byte) string {
	for _, v := range uint32s(b) {
		if v > 65535 {
			return fmt.Sprintf("%d is no port", v)
		}
	}
	return ""
}

func pidRule(j *job, pids []byte) string {
	seen := map[string]bool{}
	for ids := j.self.values[pIPv6]; len(pids) > 0; ids, pids = ids[16:], pids[8:] {
		id := string(ids[:16]) + string(pids[:8])
		if seen[id] {
			return fmt.Sprintf("two procs are %x", id)
		}
		seen[id] = true
	}
	return ""
}

func differs(got uint32, want ...int) string {
	n := 0
	for _, x := range want {
		n += x
	}
	if int(got) != n {
		return fmt.Sprintf("it is %d, not %d", got, n)
	}
	return ""
}

func sum32(v []uint32) (n uint32) {
	for _, x := range v {
		n += x
	}
	return n
}

// submitted looks at the values of one label.
func submitted(t *T, l label) {
	j := t.newJob(setup{iutHosts: []int{3}})
	j.begin()
	j.until(l)
	v := j.self.values[l]
	want := map[label]int{cVersion: -8, pIPv6: 16 * 3, pPID: 8 * 3, hIPv6: 16}[l]
	switch want = or(want, 4); {
	case want < 0 && (len(v) == 0 || len(v)%-want != 0):
		t.Fatalf("%v has %d bytes, no multiple of %d", l, len(v), -want)
	case want > 0 && len(v) != want:
		t.Fatalf("%v has %d bytes, not %d", l, len(v), want)
	}
	if rule := valueRules[l]; rule != nil {
		if wrong := rule(j, v); wrong != "" {
			t.Fatalf("%v: %s", l, wrong)
		}
	}
	if l == hPort {
		port := uint16(uint32s(v)[0])
		h := j.self.hosts[0]
		copy(h.id[:], j.self.values[hIPv6])
		h.port = port
		if port != 0 { // the last client may have none, nobody connects to it
			j.connect(j.hosts[0], h)
		}
	}
}

func disagreement(t *T, l label, v uint32) {
	j := t.newJob(setup{})
	j.clients[0].values[l] = u32(v)
	j.begin()
	j.until(l)
	if int32(uint32s(j.self.values[l])[0]) == int32(v) {
		t.Skipf("the client's own value is %d", v)
	}
	j.answer(l)
	j.untilGone() // it may take the other labels before it compares
	j.refuses(l.String() + " is not the same for all")
}

func strangeIdentities(t *T) {
	j := t.newJob(setup{})
	c := j.clients[0]
	pids := []int64{-2, 1 << 40}
	c.values[pIPv6], c.values[pPID] = nil, nil
	for i, p := range c.hosts[0].procs {
		p.id = procID{[16]byte{0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, pids[i]}
		c.values[pIPv6] = append(c.values[pIPv6], p.id.host[:]...)
		c.values[pPID] = append(c.values[pPID], u64(uint64(p.id.pid))...)
	}
	j.launch()
	j.startup()
	j.dance()
	j.quiet("no program sends")
	call := j.start(j.iut(0), "recv src=0 tag=1 type=byte n=4")
	j.short(j.peer(0), j.iut(0), 1, []byte("abcd"))
	call.ok().is("count", 4)
	j.finish()
}
