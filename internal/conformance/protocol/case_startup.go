package protocol

import (
	"fmt"
	"math"
)

const (
	refImpi = "ch. 2, IMPI command"
	refColl = "ch. 2, COLL command"
	refDone = "ch. 2, DONE command"
)

func init() {
	register("startup",
		Case{ID: "IMPI-2-JOB-01", Level: Must, Needs: Program, Run: wholeJob(setup{}), Reference: "ch. 2",
			Expect: "A client takes part in a whole job as the last one: AUTH, IMPI, labels, DONE, dance, a program, MPI_Finalize, FINI."},
		Case{ID: "IMPI-2-JOB-02", Level: Must, Needs: Program, Run: wholeJob(setup{place: first}), Reference: "ch. 2",
			Expect: "A client takes part in a whole job as client 0."},
		Case{ID: "IMPI-2-JOB-03", Level: Must, Needs: Program, Run: wholeJob(setup{place: middle, iutHosts: []int{3}, others: [][]int{{2}, {2}}}), Reference: "ch. 2",
			Expect: "A client with several procs takes part in a whole job as client 1 of three; its procs have consecutive ranks behind those of client 0."},
		Case{ID: "IMPI-2-JOB-04", Level: Must, Needs: Program, Run: wholeJob(setup{iutHosts: []int{2, 1}, others: [][]int{{1, 2}}}), Reference: "ch. 2, Host labels",
			Expect: "A client with several hosts takes part in a whole job with another that has several."},
		Case{ID: "IMPI-2-JOB-05", Level: Must, Needs: Program, Run: wholeJob(setup{others: many(31)}), Reference: "ch. 2, COLL command", Slow: true,
			Expect: "A job has 32 clients, as many as the client mask has bits."},
		Case{ID: "IMPI-2-IMPI-01", Level: Must, Needs: Client, Run: waitsForSize, Reference: refImpi,
			Expect: "A client sends IMPI with its rank, and nothing more before the server has told the number of clients."},
		Case{ID: "IMPI-2-IMPI-02", Level: Must, Needs: Client, Run: func(t *T) { badSize(t, 1) }, Reference: refImpi,
			Expect: "A client gives up when the number of clients is not above its rank."},
		Case{ID: "IMPI-2-IMPI-03", Level: Should, Needs: Client, Run: func(t *T) { badSize(t, 33) }, Reference: refImpi,
			Expect: "A client gives up when the number of clients is above 32."},
		Case{ID: "IMPI-2-COLL-01", Level: Must, Needs: Client, Run: lockStep, Reference: refColl,
			Expect: "A client submits its labels in ascending order, each once, and waits for each answer before the next."},
		Case{ID: "IMPI-2-COLL-02", Level: Must, Needs: Program, Run: otherVersions, Reference: "ch. 2, Client labels",
			Expect: "A client works with others that list several versions, of which one is 0.0."},
		Case{ID: "IMPI-2-COLL-03", Level: Must, Needs: Program, Run: leastValues, Reference: "ch. 2, Client labels",
			Expect: "MPI_TAG_UB is the least C_TAGUB of all clients."},
		Case{ID: "IMPI-2-COLL-04", Level: Must, Needs: Client, Run: func(t *T) { disagreement(t, cXSize, 512) }, Reference: "ch. 2, Client labels",
			Expect: "A client gives up when C_COLL_XSIZE is not the same for all."},
		Case{ID: "IMPI-2-COLL-05", Level: Must, Needs: Client, Run: func(t *T) { disagreement(t, cMaxLinear, 2) }, Reference: "ch. 2, Client labels",
			Expect: "A client gives up when C_COLL_MAXLINEAR is not the same for all."},
		Case{ID: "IMPI-2-COLL-06", Level: Must, Needs: Program, Run: defaultsAgree, Reference: "ch. 2, Client labels",
			Expect: "-1 stands for 1024 in C_COLL_XSIZE and for 4 in C_COLL_MAXLINEAR, and agrees with them."},
		Case{ID: "IMPI-2-COLL-07", Level: Must, Needs: Program, Run: wholeJob(setup{mapped: true}), Reference: "ch. 1, Data types",
			Expect: "Host IDs of others that embed IPv4 as ::ffff:a.b.c.d are understood, and echoed as they are."},
		Case{ID: "IMPI-2-COLL-08", Level: Must, Needs: Program, Run: strangeIdentities, Reference: "ch. 2, Proc labels",
			Expect: "A proc's identity is its P_IPV6 and P_PID, any 24 bytes: P_IPV6 need not be the address of a host, P_PID has 64 bits."},
		Case{ID: "IMPI-2-COLL-09", Level: Should, Needs: Program, Run: foreignLabel, Reference: refColl,
			Expect: "A client drops the answer to a label that it does not know and has not sent."},
		Case{ID: "IMPI-2-COLL-10", Level: Should, Needs: Program, Run: withoutLabels(cTagUB, hAckMark, hHiWater), Reference: refColl,
			Expect: "A client goes on when another one has not submitted C_TAGUB, H_ACKMARK and H_HIWATER, as the mask says."},
		Case{ID: "IMPI-2-COLL-12", Level: Should, Needs: Program, Run: withoutLabels(cVersion, cXSize, cMaxLinear), Reference: refColl,
			Expect: "A client goes on when another one has not submitted C_VERSION, C_COLL_XSIZE and C_COLL_MAXLINEAR: it has 0.0 and the defaults."},
		Case{ID: "IMPI-2-COLL-11", Level: Should, Needs: Program, Run: unknownCommand, Reference: "ch. 2",
			Expect: "A client skips a command that it does not know."},
		Case{ID: "IMPI-2-DONE-01", Level: Must, Needs: Program, Run: waitsForDone, Reference: refDone,
			Expect: "A client neither connects to other hosts nor sends anything before the server's DONE."},
		Case{ID: "IMPI-2-DONE-02", Level: Should, Needs: Program, Run: longDone, Reference: refDone,
			Expect: "Data of a DONE are skipped."},
	)
	for i, x := range labels {
		register("startup", Case{ID: fmt.Sprintf("IMPI-2-LABEL-%02d", i+1), Level: Must, Needs: Client, Run: func(t *T) { submitted(t, x.label) },
			Reference: "ch. 2, Client, Host and Proc labels", Expect: fmt.Sprintf("A client submits %v, %s.", x.label, valueRules[x.label].text)})
	}
}

// many gives n clients with one host of one proc each, but for the first, which has a
// proc for commands besides.
func many(n int) [][]int {
	all := make([][]int, n)
	for i := range all {
		all[i] = []int{1}
	}
	all[0] = []int{2}
	return all
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

func waitsForSize(t *T) {
	asked := func() *job {
		j := t.newJob(setup{})
		j.launch()
		j.connected()
		j.authenticate()
		j.conn.expect(cmdIMPI, 4)
		return j
	}
	const why = "the server has not said how many clients there are"
	asked().unanswered(why)
	j := asked()
	j.conn.silent(why)
	j.conn.record(record{cmdIMPI, u32(2)})
	j.conn.expect(cmdColl, -1)
}

func badSize(t *T, n uint32) {
	j := t.newJob(setup{})
	j.launch()
	j.connected()
	j.authenticate()
	j.conn.expect(cmdIMPI, 4)
	j.conn.record(record{cmdIMPI, u32(n)})
	j.refuses(fmt.Sprintf("it is client 1, and the job is said to have %d clients", n))
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

// valueRule is what must hold for the values of a label.
type valueRule struct {
	text  string
	holds func(j *job, v []byte) string // what does not
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

var valueRules = map[label]valueRule{
	cVersion:   {"versions as pairs of 4 bytes, ascending, of which 0.0 is one", versionRule},
	cNHosts:    {"the number of its hosts, 4 bytes, 1 or more", atLeast(1)},
	cNProcs:    {"the number of its procs, 4 bytes", func(j *job, b []byte) string { return differs(uint32s(b)[0], j.setup.iutHosts...) }},
	cDataLen:   {"the most data that it takes in a packet, 4 bytes, 1 or more", atLeast(1)},
	cTagUB:     {"the highest tag, 4 bytes, 32767 or more", tagRule},
	cXSize:     {"4 bytes, 0 or more or -1", crossover},
	cMaxLinear: {"4 bytes, 0 or more or -1", crossover},
	hIPv6:      {"16 bytes for each host: the address where it listens", nil},
	hPort:      {"4 bytes for each host: the port where it listens", portRule},
	hNProcs:    {"4 bytes for each host: its procs, which add up to C_NPROCS", func(j *job, b []byte) string { return differs(sum32(uint32s(b)), j.setup.iutHosts...) }},
	hAckMark:   {"4 bytes for each host, 1 or more", atLeast(1)},
	hHiWater:   {"4 bytes for each host, not below its ackmark", func(j *job, b []byte) string { return atLeast(uint32s(j.self.values[hAckMark])[0])(j, b) }},
	pIPv6:      {"16 bytes for each proc", nil},
	pPID:       {"8 bytes for each proc, which together with P_IPV6 are unique", pidRule},
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
	if rule := valueRules[l]; rule.holds != nil {
		if wrong := rule.holds(j, v); wrong != "" {
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

func otherVersions(t *T) {
	wholeJob(setup{versions: [][2]uint32{{0, 0}, {0, 1}, {1, 0}}})(t)
}

func leastValues(t *T) {
	j := t.join(setup{tagub: 40000})
	j.do(j.iut(0), "info").is("tagub", 40000)
	j.finish()
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

func defaultsAgree(t *T) {
	for _, s := range []setup{{xsize: defaultXSize, maxlinear: defaultMaxLinear}, {xsize: -1, maxlinear: -1}} {
		wholeJob(s)(t)
	}
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

func foreignLabel(t *T) {
	j := t.newJob(setup{})
	j.setup.before = func(c *conn, l label) {
		if foreign := map[label]record{
			hIPv6: answer(0x1700, 1, u32(7, 8, 9)), pPID: answer(0x3001, 1, nil), 0: answer(0x7fff0000, 1, u32(1)),
		}[l]; foreign.cmd != 0 {
			c.record(foreign)
		}
	}
	j.launch()
	j.startup()
	j.dance()
	j.quiet("no program sends")
	j.finish()
}

// withoutLabels is a job in which one client leaves labels out.
func withoutLabels(out ...label) func(*T) {
	return func(t *T) {
		j := t.newJob(setup{others: [][]int{{2}, {1}}})
		j.clients[1].omits = map[label]bool{}
		for _, l := range out {
			j.clients[1].omits[l] = true
		}
		j.launch()
		j.startup()
		j.dance()
		j.quiet("no program sends")
		j.finish()
	}
}

func unknownCommand(t *T) {
	j := t.newJob(setup{})
	j.setup.before = func(c *conn, l label) {
		if l == cNHosts || l == 0 {
			c.record(record{0x58595A5A, []byte("to be skipped")})
		}
	}
	j.launch()
	j.startup()
	j.dance()
	j.quiet("no program sends")
	j.finish()
}

func waitsForDone(t *T) {
	asked := func() *job {
		j := t.newJob(setup{})
		j.begin()
		j.until(0)
		return j
	}
	const why = "the server has not said DONE"
	asked().unanswered(why)
	j := asked()
	j.conn.silent(why)
	if c := j.hosts[0].listen.tryAccept(glance); c != nil {
		t.Fatalf("it connected to our host before the server's DONE")
	}
	j.conn.record(record{cmd: cmdDone})
	j.settle()
	j.dance()
	j.finish()
}

func longDone(t *T) {
	j := t.newJob(setup{})
	j.begin()
	j.until(0)
	j.conn.record(record{cmdDone, []byte("skip this")})
	j.settle()
	j.dance()
	j.quiet("no program sends")
	j.finish()
}
