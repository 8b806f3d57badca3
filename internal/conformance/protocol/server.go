package protocol

import (
	"encoding/binary"
	"net"
	"slices"
	"time"
)

// startup plays the server until the IUT has DONE: AUTH, IMPI, the labels.
func (j *job) startup() {
	j.connected()
	j.authenticate()
	j.rank()
	j.collect()
	j.settle()
}

// connected waits for the IUT's connection to the server.
func (j *job) connected() {
	const what = "client to server"
	var c *net.TCPConn
	for end := time.Now().Add((begins - 1) * j.t.patience); c == nil && j.run.running() && time.Now().Before(end); {
		c = j.server.tryAccept(glance)
	}
	if c == nil {
		c = j.server.tryAccept(j.t.patience) // a command that has ended may have left a daemon
	}
	switch {
	case c != nil:
		j.conn = j.server.take(c, what)
	case !j.run.running():
		j.t.Fatalf("no connection came: %s: the client has ended (%v)", what, j.run.cmd.ProcessState)
	default:
		j.t.Fatalf("no connection came within %v: %s", begins*j.t.patience, what)
	}
}

// takeAuth reads AUTH and gives the mask.
func (j *job) takeAuth() uint32 {
	return binary.BigEndian.Uint32(j.conn.expect(cmdAuth, 4).data)
}

// choose answers AUTH.
func (j *job) choose(which uint32) {
	j.conn.send("which="+[]string{"NONE", "KEY"}[which&1]+" len=0", u32(which, 0))
}

// takeKey reads the key.
func (j *job) takeKey() uint64 {
	b := j.conn.read(8, "the key")
	j.t.trace.add("<- %s: key %x", j.conn.name, b)
	return binary.BigEndian.Uint64(b)
}

// authenticate does AUTH as setup.auth wants it.
func (j *job) authenticate() {
	mask := j.takeAuth()
	switch both := mask & j.setup.auth.mask(); {
	case both&(1<<authKey) != 0:
		j.choose(authKey)
		equal(j.t, "the key", j.takeKey(), j.setup.auth.Key)
	case both&(1<<authNone) != 0:
		j.choose(authNone)
	default:
		j.t.Fatalf("AUTH: the mask is 0x%x, which has nothing of 0x%x", mask, j.setup.auth.mask())
	}
}

// rank does IMPI.
func (j *job) rank() {
	r := j.conn.expect(cmdIMPI, 4)
	equal(j.t, "IMPI: the client rank", int(int32(binary.BigEndian.Uint32(r.data))), j.self.rank)
	j.conn.record(record{cmdIMPI, u32(uint32(len(j.clients)))})
}

// takeLabel reads COLL, or DONE as label 0.
func (j *job) takeLabel() (label, []byte) {
	r := j.conn.next("COLL or DONE")
	switch {
	case r.cmd == cmdDone && len(r.data) == 0:
		return 0, nil
	case r.cmd != cmdColl || len(r.data) < 4:
		j.t.Fatalf("%s: %v where COLL or DONE should be", j.conn.name, r)
	}
	return label(binary.BigEndian.Uint32(r.data)), r.data[4:]
}

// collect takes the IUT's labels and answers them with everybody's, until DONE, which
// it answers too.
func (j *job) collect() {
	j.until(0)
	j.conn.record(record{cmd: cmdDone})
}

// until takes and answers labels until the IUT has sent this one (DONE for 0), which is
// left unanswered.
func (j *job) until(end label) {
	for {
		l, values := j.takeLabel()
		if _, twice := j.self.values[l]; twice {
			j.t.Fatalf("COLL %v comes twice", l)
		}
		if l != 0 {
			j.self.values[l] = values
		}
		if j.setup.before != nil {
			j.setup.before(j.conn, l)
		}
		if l == end {
			return
		}
		if l == 0 {
			j.t.Fatalf("DONE comes, and %v has not come", end)
		}
		j.answer(l)
	}
}

// answer answers a label with everybody's values.
func (j *job) answer(l label) {
	mask, all := j.everybody(l)
	if j.setup.answers != nil {
		mask, all = j.setup.answers(l, mask, all)
	}
	j.conn.record(answer(l, mask, all))
}

// begin starts the IUT and does AUTH and IMPI.
func (j *job) begin() {
	j.launch()
	j.connected()
	j.authenticate()
	j.rank()
}

// refuses waits until the IUT gives up because of what it was told: it closes its
// connection to the server, and says nothing before that but, if it wants to, something
// of its own. A client that has connected to a host of the job before that has not given
// up because of it.
func (j *job) refuses(why string) {
	r := j.conn.closed(why)
	if len(r.data) >= recordHeader {
		if c := command(uint32s(r.data)[0]); c.known() {
			j.t.Fatalf("the client goes on with %v: %s", c, why)
		}
	}
	j.run.survives(why)
	if h := j.visited(); h != nil {
		j.t.Fatalf("the client has gone on and connected to host %d: %s", h.rank, why)
	}
}

// visited gives a host of the tester to which somebody has connected, and was not
// accepted yet.
func (j *job) visited() *host {
	for _, h := range j.hosts {
		if h.listen != nil && h.listen.tryAccept(glance/10) != nil {
			return h
		}
	}
	return nil
}

// everybody gives the answer to a label. What setup leaves open, the tester's clients
// submit as the IUT does.
func (j *job) everybody(l label) (mask uint32, all []byte) {
	for _, c := range j.clients {
		v, has := c.values[l]
		if c.omits[l] {
			continue
		}
		if !has && (l == cXSize || l == cMaxLinear) {
			v, has = j.self.values[l]
		}
		if has {
			mask |= 1 << c.rank
			all = append(all, v...)
		}
	}
	return mask, all
}

// settle derives the job's values from what all submitted, after checking that the
// IUT's are complete.
func (j *job) settle() {
	for _, x := range labels {
		if _, has := j.self.values[x.label]; !has {
			j.t.Fatalf("the IUT has not submitted %v", x.label)
		}
	}
	j.identify()
	j.datalen, j.ackmark, j.hiwater = j.least(cDataLen), j.least(hAckMark), j.least(hHiWater)
	j.tagub = int32(j.least(cTagUB))
	j.xsize, j.maxlinear = j.chosen(cXSize, defaultXSize), j.chosen(cMaxLinear, defaultMaxLinear)
	for _, h := range j.hosts {
		for _, p := range h.procs {
			p.rank = len(j.procs)
			j.procs = append(j.procs, p)
		}
	}
	j.control.begin()
}

// value gives what is in the IUT's submission of a label with width bytes per value.
func (j *job) value(l label, width, n int) []byte {
	v := j.self.values[l]
	if len(v) != width*n {
		j.t.Fatalf("the IUT submitted %d bytes for %v, not %d values of %d", len(v), l, n, width)
	}
	return v
}

// identify learns where the IUT's hosts are and who its procs are.
func (j *job) identify() {
	be := binary.BigEndian
	n := len(j.self.hosts)
	equal(j.t, "C_NHOSTS of the IUT", int(be.Uint32(j.value(cNHosts, 4, 1))), n)
	ids, ports, sizes := j.value(hIPv6, 16, n), j.value(hPort, 4, n), uint32s(j.value(hNProcs, 4, n))
	total := 0
	for i, h := range j.self.hosts {
		equal(j.t, "H_NPROCS of a host of the IUT", int(sizes[i]), len(h.procs))
		total += len(h.procs)
		copy(h.id[:], ids[16*i:])
		h.port = uint16(be.Uint32(ports[4*i:]))
	}
	equal(j.t, "C_NPROCS of the IUT", int(be.Uint32(j.value(cNProcs, 4, 1))), total)
	hosts, pids := j.value(pIPv6, 16, total), j.value(pPID, 8, total)
	for _, h := range j.self.hosts {
		for _, p := range h.procs {
			copy(p.id.host[:], hosts)
			p.id.pid = int64(be.Uint64(pids))
			hosts, pids = hosts[16:], pids[8:]
		}
	}
	j.unique()
}

// unique checks that no two procs are the same.
func (j *job) unique() {
	seen := map[procID]bool{}
	for _, h := range j.hosts {
		for _, p := range h.procs {
			if seen[p.id] {
				j.t.Fatalf("two procs of the job are %v", p.id)
			}
			seen[p.id] = true
		}
	}
}

// submitted gives all values of 4 bytes of a label, of all clients.
func (j *job) submitted(l label) (v []uint32) {
	_, all := j.everybody(l)
	return uint32s(all)
}

func (j *job) least(l label) uint32 { return slices.Min(j.submitted(l)) }

// chosen gives the value that all must have, -1 standing for the default.
func (j *job) chosen(l label, standard int32) int32 {
	v := int32(j.submitted(l)[0])
	if v == -1 {
		return standard
	}
	return v
}

// finished waits for FINI and the end of the connection to the server.
func (j *job) finished() {
	j.conn.expect(cmdFini, 0)
	if r := j.conn.closed("the client has sent FINI"); len(r.data) > 0 {
		j.t.Fatalf("%s: %s came after FINI", j.conn.name, shortHex(r.data))
	}
	j.conn.close()
}
