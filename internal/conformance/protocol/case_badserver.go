package protocol

import (
	"fmt"
	"maps"
)

// refuse is a case in which a client gives up after each of the things that are bad.
func refuse(id, expect string, level Level, reference string, bad ...func(j *job)) Case {
	return Case{ID: id, Level: level, Needs: Client, Expect: expect, Reference: reference, Run: func(t *T) {
		for _, f := range bad {
			j := t.newJob(setup{})
			f(j)
			j.refuses(expect)
		}
	}}
}

// spoil has the server answer a label otherwise.
func spoil(l label, f func(mask uint32, v []byte) (uint32, []byte)) func(j *job) {
	return func(j *job) {
		j.setup.answers = func(x label, mask uint32, v []byte) (uint32, []byte) {
			if x == l {
				return f(mask, v)
			}
			return mask, v
		}
		j.begin()
		j.untilGone()
	}
}

// submit has another client submit something else.
func submit(v map[label][]byte) func(j *job) {
	return func(j *job) {
		maps.Copy(j.clients[0].values, v)
		j.begin()
		j.untilGone()
	}
}

func value(l label, v []byte) func(j *job) { return submit(map[label][]byte{l: v}) }

// What follows from a count may show that it is impossible. With these nothing does.
var empty = map[label][]byte{
	cNHosts: u32(0), cNProcs: u32(0), hIPv6: nil, hPort: nil, hNProcs: nil, hAckMark: nil, hHiWater: nil, pIPv6: nil, pPID: nil,
}

const billions = 0xee6b0000 // none in 16 bits

func init() {
	const values = "ch. 2, Client, Host and Proc labels"
	register("bad servers",
		Case{ID: "IMPI-2-BADSERVER-01", Level: Must, Needs: Client, Run: closedServer, Reference: "ch. 2",
			Expect: "A client whose server closes the connection during startup (after AUTH, IMPI, a label, DONE) ends with a status that is not 0."},
		Case{ID: "IMPI-2-BADSERVER-02", Level: Must, Needs: Client, Run: cutRecord, Reference: "ch. 2",
			Expect: "A client whose server is lost in the middle of a record ends with a status that is not 0."},
		Case{ID: "IMPI-2-BADSERVER-03", Level: Should, Needs: Client, Run: impossibleLength, Reference: "ch. 2",
			Expect: "A client gives up at an answer whose length is negative or 2^31-1; it neither waits for so much nor dies of it."},
		Case{ID: "IMPI-2-BADSERVER-04", Level: Should, Needs: Client, Run: shortAnswers, Reference: refColl,
			Expect: "A client gives up at an answer that is too short for label and mask, and at a size in IMPI of 2 bytes."},
		Case{ID: "IMPI-2-BADSERVER-05", Level: Should, Needs: Client, Run: outOfOrder, Reference: "ch. 2",
			Expect: "A client gives up when the server says DONE, or IMPI again, where an answer is due."},
		Case{ID: "IMPI-2-BADSERVER-19", Level: Should, Needs: Client, Run: failureStatus, Reference: "ch. 2",
			Expect: "The command that started a client ends when the client has given up, with a status that is not 0."},
		Case{ID: "IMPI-2-BADSERVER-06", Level: Must, Needs: Program, Run: answersInPieces, Reference: "ch. 2",
			Expect: "The server's records may come in pieces of one byte."},
		refuse("IMPI-2-BADSERVER-07", "A client gives up when an answer has fewer values than its mask has clients.", Should, refColl,
			spoil(cDataLen, func(m uint32, v []byte) (uint32, []byte) { return m, v[:4] })),
		refuse("IMPI-2-BADSERVER-08", "A client gives up when its own values are not in the answer to its label.", Should, refColl,
			spoil(cDataLen, func(m uint32, v []byte) (uint32, []byte) { return 1, v[:4] })),
		refuse("IMPI-2-BADSERVER-09", "A client gives up when the mask has a client that the job has not.", Should, refColl,
			spoil(cDataLen, func(m uint32, v []byte) (uint32, []byte) { return m | 1<<5, append(v, u32(1)...) })),
		refuse("IMPI-2-BADSERVER-10", "A client gives up when another one does not list version 0.0.", Should, "ch. 2, Client labels", value(cVersion, u32(1, 0))),
		refuse("IMPI-2-BADSERVER-11", "A client gives up when another one has no hosts.", Should, values, value(cNHosts, u32(0)), submit(empty)),
		refuse("IMPI-2-BADSERVER-12", "A client gives up when another one has a data length of 0.", Should, values, value(cDataLen, u32(0))),
		refuse("IMPI-2-BADSERVER-13", "A client gives up when another one's C_TAGUB is below 32767.", Should, values, value(cTagUB, u32(100))),
		refuse("IMPI-2-BADSERVER-14", "A client gives up when another one's ackmark is 0.", Should, values, value(hAckMark, u32(0))),
		refuse("IMPI-2-BADSERVER-15", "A client gives up when another one's ackmark is above its hiwater.", Should, values,
			value(hHiWater, u32(3)), submit(map[label][]byte{hAckMark: u32(1 << 20), hHiWater: u32(1<<20 - 1)})),
		refuse("IMPI-2-BADSERVER-16", "A client gives up when another one's H_NPROCS do not add up to its C_NPROCS.", Should, values, value(hNProcs, u32(5))),
		refuse("IMPI-2-BADSERVER-17", "A client gives up when two procs have one identity.", Should, "ch. 2, Proc labels", value(pPID, u64(9, 9))),
		refuse("IMPI-2-BADSERVER-20", "A client gives up when another one's H_PORT has 2 bytes: all ports behind it are out of step.", Should, values, value(hPort, []byte{0x1f, 0x90})),
		refuse("IMPI-2-BADSERVER-18", "A client gives up when another one says it has 4,000,000,000 hosts or procs.", Should, values,
			submit(map[label][]byte{cNHosts: u32(4e9), cNProcs: u32(4e9)}), submit(map[label][]byte{cNHosts: u32(billions + 1), cNProcs: u32(billions + 2)})),
	)
}

// untilGone answers labels and DONE as long as the IUT takes them.
func (j *job) untilGone() {
	for {
		r, err := j.conn.tryNext(j.t.patience)
		switch {
		case err != nil:
			return
		case r.cmd == cmdColl && len(r.data) >= 4:
			l := label(uint32s(r.data)[0])
			j.self.values[l] = r.data[4:]
			mask, all := j.everybody(l)
			if j.setup.answers != nil {
				mask, all = j.setup.answers(l, mask, all)
			}
			r = answer(l, mask, all)
		case r.cmd == cmdDone:
		default:
			return // a command of its own, by which it says why it gives up
		}
		if j.conn.trySend(r.String(), r.bytes()) != nil {
			return
		}
	}
}

// stages are the places of startup at which something can happen: they leave the IUT
// waiting for an answer.
var stages = []struct {
	name string
	to   func(j *job)
}{
	{"AUTH", func(j *job) { j.launch(); j.connected(); j.takeAuth() }},
	{"IMPI", func(j *job) { j.launch(); j.connected(); j.authenticate(); j.conn.expect(cmdIMPI, 4) }},
	{"C_VERSION", func(j *job) { j.begin(); j.until(cVersion) }},
	{"P_PID", func(j *job) { j.begin(); j.until(pPID) }},
	{"DONE", func(j *job) { j.begin(); j.until(0) }},
}

func closedServer(t *T) {
	for _, s := range stages {
		j := t.newJob(setup{})
		s.to(j)
		j.conn.close()
		j.run.fails("the server was lost after " + s.name)
	}
}

func cutRecord(t *T) {
	for _, b := range [][]byte{{0x43, 0x4f}, answer(cVersion, 3, u64(0, 0)).bytes()[:21]} {
		j := t.newJob(setup{})
		j.begin()
		j.until(cVersion)
		j.conn.raw(b)
		j.conn.close()
		j.run.fails("the server was lost in the middle of an answer")
	}
}

func impossibleLength(t *T) {
	for _, n := range []int32{-1, 1<<31 - 1} {
		j := t.newJob(setup{})
		j.begin()
		j.until(cNHosts)
		j.conn.send(fmt.Sprintf("COLL of %d bytes", n), append(rawHeader(cmdColl, n), u32(uint32(cNHosts), 3)...))
		j.refuses("the length is impossible")
	}
}

func failureStatus(t *T) {
	j := t.newJob(setup{iutAuth: Auth{None: true}})
	stages[0].to(j)
	j.conn.send("a choice that was not offered", u32(9, 0))
	j.run.fails("the server picked a mechanism that was not offered")
}

func shortAnswers(t *T) {
	j := t.newJob(setup{})
	j.begin()
	j.until(cNHosts)
	j.conn.record(record{cmdColl, u32(uint32(cNHosts))})
	j.refuses("the answer has no mask")
	j = t.newJob(setup{})
	stages[1].to(j)
	j.conn.record(record{cmdIMPI, []byte{0, 2}})
	j.refuses("the size has 2 bytes")
}

func outOfOrder(t *T) {
	for _, r := range []record{{cmd: cmdDone}, {cmdIMPI, u32(2)}} {
		j := t.newJob(setup{})
		j.begin()
		j.until(cNHosts)
		j.conn.record(r)
		j.refuses("the server's command is out of order")
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

// pieces sends to the IUT byte by byte.
func (j *job) pieces(b []byte) {
	j.t.trace.add("-> %s: %s, byte by byte", j.conn.name, shortHex(b))
	j.t.must(inPieces(j.conn.tcp, b, 1))
}
