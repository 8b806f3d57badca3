package protocol

import (
	"fmt"
	"slices"
)

func init() {
	register("startup",
		Case{ID: "IMPI-2-SERVER-01", Level: Must, Needs: Server, Run: allRanks, Reference: refImpi,
			Expect: "A server answers IMPI to all clients when the last one has come, and before that to none."},
		Case{ID: "IMPI-2-SERVER-02", Level: Must, Needs: Server, Run: concatenation, Reference: refColl,
			Expect: "A label's answer goes to all clients when all have submitted it: the mask, and the values by client rank, whatever order they came in."},
		Case{ID: "IMPI-2-SERVER-03", Level: Must, Needs: Server, Run: passedLabel, Reference: refColl,
			Expect: "A label that a client has passed by with a higher one is answered without it, to all clients, that one included."},
		Case{ID: "IMPI-2-SERVER-04", Level: Must, Needs: Server, Run: labelAfterDone, Reference: refColl,
			Expect: "A label that a client leaves out by DONE is answered without it, to all clients."},
		Case{ID: "IMPI-2-SERVER-05", Level: Must, Needs: Server, Run: unknownLabels, Reference: refColl,
			Expect: "Labels that the server does not know are collected like all others: it looks at nothing but their numbers and bytes."},
		Case{ID: "IMPI-2-SERVER-06", Level: Must, Needs: Server, Run: anyLength, Reference: refColl,
			Expect: "Values of any number of bytes are passed on, none and odd ones included, different from client to client."},
		Case{ID: "IMPI-2-SERVER-07", Level: Must, Needs: Server, Run: fullServer, Reference: refColl,
			Expect: "A server serves 32 clients; bit 31 of the mask is client 31."},
		Case{ID: "IMPI-2-SERVER-08", Level: Should, Needs: Server, Run: pipelining, Reference: refColl,
			Expect: "A client that sends all labels and DONE at once, without waiting for answers, gets the same answers in the order of the labels."},
		Case{ID: "IMPI-2-SERVER-09", Level: Must, Needs: Server, Run: byteByByte, Reference: "ch. 2",
			Expect: "Records may come in pieces of one byte, and several in one piece."},
		Case{ID: "IMPI-2-SERVER-10", Level: Must, Needs: Server, Run: doneFromAll, Reference: refDone,
			Expect: "A server answers DONE to all clients when the last one has sent it, and before that to none."},
		Case{ID: "IMPI-2-SERVER-11", Level: Must, Needs: Server, Run: oneClient, Reference: "ch. 2",
			Expect: "A job of one client is served."},
		Case{ID: "IMPI-2-SERVER-12", Level: Must, Needs: Server, Run: largeValues, Reference: refColl,
			Expect: "The P_IPV6 of 4096 procs of each of two clients is collected."},
	)
	register("shutdown",
		Case{ID: "IMPI-2-FINI-01", Level: Must, Needs: Server, Run: finiFromAll, Reference: refFiniCommand,
			Expect: "A server ends with status 0 when all clients have sent FINI and not before; it answers FINI with nothing, and a connection whose client has sent it may close."},
		Case{ID: "IMPI-2-FINI-02", Level: Should, Needs: Server, Run: reversedFini, Reference: refFiniCommand,
			Expect: "FINI with its four bytes reversed counts as FINI: early LAM on little-endian machines sends it so."},
		Case{ID: "IMPI-2-FINI-03", Level: Should, Needs: Server, Run: longFini, Reference: refFiniCommand,
			Expect: "Data of a DONE or a FINI are skipped."},
	)
	register("bad clients",
		Case{ID: "IMPI-2-BADCLIENT-01", Level: Should, Needs: Server, Run: strangers, Reference: "ch. 2",
			Expect: "Connections that come to nothing before IMPI (closed at once, reset, garbage, half a record) do not end the job."},
		Case{ID: "IMPI-2-BADCLIENT-02", Level: Should, Needs: Server, Run: silentStranger, Reference: "ch. 2",
			Expect: "A connection that says nothing, or stops in the middle of AUTH, does not keep others waiting."},
		Case{ID: "IMPI-2-BADCLIENT-03", Level: Should, Needs: Server, Run: func(t *T) { wrongRank(t, 0) }, Reference: refImpi,
			Expect: "A client rank that is taken ends the job: its sites are set up wrong, and one will never come."},
		Case{ID: "IMPI-2-BADCLIENT-04", Level: Should, Needs: Server, Run: func(t *T) { wrongRank(t, 2); wrongRank(t, 0xffffffff) }, Reference: refImpi,
			Expect: "A client rank that is not below the number of clients, or negative, ends the job."},
		Case{ID: "IMPI-2-BADCLIENT-05", Level: Should, Needs: Server, Run: tooLong, Reference: "ch. 2",
			Expect: "A record whose length is negative or 2^31-1 ends the connection; the server neither waits for so much nor dies of it."},
		Case{ID: "IMPI-2-BADCLIENT-06", Level: Must, Needs: Server, Run: lostClient, Reference: "ch. 2, FINI command",
			Expect: "A client that is lost before its FINI is an error: the server ends with a status that is not 0, and the others' connections are closed."},
		Case{ID: "IMPI-2-BADCLIENT-07", Level: Should, Needs: Server, Run: wrongOrder, Reference: "ch. 2",
			Expect: "Commands in the wrong order (AUTH or IMPI twice, FINI before DONE, COLL after DONE) end the connection, and the job with it."},
		Case{ID: "IMPI-2-BADCLIENT-08", Level: Should, Needs: Server, Run: shortPayloads, Reference: "ch. 2",
			Expect: "Records that are too short for what they say (AUTH of 3 bytes, IMPI of 2, COLL of 3) end the connection."},
		Case{ID: "IMPI-2-BADCLIENT-09", Level: Should, Needs: Server, Run: oneTooMany, Reference: refImpi,
			Expect: "A connection that comes when all clients are there is closed, and the job goes on."},
		Case{ID: "IMPI-2-BADCLIENT-10", Level: Should, Needs: Server, Run: skipsUnknown, Reference: "ch. 2",
			Expect: "A command that the server does not know is skipped."},
		Case{ID: "IMPI-2-BADCLIENT-11", Level: Should, Needs: Server, Run: labelTwice, Reference: refColl,
			Expect: "A label that a client submits twice ends its connection, as does label 0, which is reserved."},
	)
}

func allRanks(t *T) {
	joined := func() (*served, []*member) {
		s := t.serve(3, Auth{None: true})
		ms := []*member{s.connect(0), s.connect(1), s.connect(2)}
		for i, m := range []*member{ms[2], ms[0]} {
			m.auth(1 << authNone)
			m.joins([]int{2, 0}[i])
			m.silent("client 1 is missing")
		}
		ms[1].auth(1 << authNone)
		return s, ms
	}
	_, ms := joined()
	unanswered("client 1 has not sent IMPI", ms[2].conn, ms[0].conn)
	s, ms := joined()
	ms[0].silent("client 1 has not sent IMPI")
	ms[1].joins(1)
	for _, m := range ms {
		m.takesSize(3)
	}
	s.end(ms)
}

const refFiniCommand = "ch. 2, FINI command"

// running brings a job of two clients as far as DONE.
func (t *T) running() (*served, []*member) {
	s, ms := t.members(2)
	for _, m := range ms {
		m.done()
	}
	for _, m := range ms {
		m.takesDone()
	}
	return s, ms
}

func finiFromAll(t *T) {
	s, ms := t.running()
	ms[1].fini()
	ms[1].close()
	ms[0].silent("nothing is to be said to a client whose peer has finished")
	s.run.alive("client 0 has not sent FINI")
	ms[0].fini()
	if r := ms[0].closed("all have sent FINI"); len(r.data) > 0 {
		t.Fatalf("%s: the answer to FINI is %s", ms[0].name, shortHex(r.data))
	}
	s.run.succeeds()
}

func reversedFini(t *T) {
	s, ms := t.running()
	for _, m := range ms {
		m.send("FINI reversed", rawHeader(0x494E4946, 0))
	}
	for _, m := range ms {
		m.closed("all have sent FINI")
	}
	s.run.succeeds()
}

func longFini(t *T) {
	s, ms := t.members(2)
	for _, m := range ms {
		m.record(record{cmdDone, []byte("skip")})
	}
	for _, m := range ms {
		m.takesDone()
		m.record(record{cmdFini, []byte("skip this")})
		m.close()
	}
	s.run.succeeds()
}

// takeAll waits for the same answer at all clients.
func takeAll(ms []*member, l label, mask uint32, values []byte) {
	for _, m := range ms {
		m.takes(l, mask, values)
	}
}

func concatenation(t *T) {
	s, ms := t.members(3)
	for _, l := range []label{cNHosts, hPort} {
		var want []byte
		for _, i := range []int{2, 0, 1} {
			for _, m := range ms {
				m.silent("the label is not complete")
			}
			ms[i].submits(l, slices.Repeat([]byte{byte(16*i + 1), 2, 3, byte(i)}, i+1))
		}
		for i := range ms {
			want = append(want, slices.Repeat([]byte{byte(16*i + 1), 2, 3, byte(i)}, i+1)...)
		}
		takeAll(ms, l, 7, want)
	}
	s.end(ms)
}

func passedLabel(t *T) {
	s, ms := t.members(3)
	ms[0].submits(cTagUB, u32(1))
	ms[2].submits(cTagUB, u32(3))
	for _, m := range ms {
		m.silent("client 1 may still submit the label")
	}
	ms[1].submits(cXSize, u32(20))
	takeAll(ms, cTagUB, 5, u32(1, 3))
	ms[0].submits(cXSize, u32(10))
	ms[2].submits(cXSize, u32(30))
	takeAll(ms, cXSize, 7, u32(10, 20, 30))
	s.end(ms)
}

func labelAfterDone(t *T) {
	_, ms := t.members(2)
	ms[0].submits(cTagUB, u32(1))
	ms[1].done()
	takeAll(ms, cTagUB, 1, u32(1))
	ms[0].submits(pPID, u64(1))
	takeAll(ms, pPID, 1, u64(1))
	ms[0].done()
	ms[0].takesDone()
	ms[1].takesDone()
}

func unknownLabels(t *T) {
	s, ms := t.members(2)
	for _, l := range []label{1, 0x1234, 0x7fffffff} {
		for i, m := range ms {
			m.submits(l, []byte{byte(i), 'x'})
		}
		takeAll(ms, l, 3, []byte{0, 'x', 1, 'x'})
	}
	s.end(ms)
}

func anyLength(t *T) {
	s, ms := t.members(3)
	ms[0].submits(cVersion, nil)
	ms[1].submits(cVersion, u64(0, 1))
	ms[2].submits(cVersion, []byte{9})
	takeAll(ms, cVersion, 7, append(u64(0, 1), 9))
	for _, m := range ms {
		m.submits(cNHosts, nil)
	}
	takeAll(ms, cNHosts, 7, nil)
	s.end(ms)
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
	s := t.serve(2, Auth{None: true})
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
	s := t.serve(1, Auth{Key: aKey})
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

func doneFromAll(t *T) {
	const why = "client 0 has not sent DONE"
	_, ms := t.members(3)
	ms[1].done()
	ms[2].done()
	unanswered(why, ms[1].conn, ms[2].conn, ms[0].conn)
	s, ms := t.members(3)
	for _, i := range []int{1, 2} {
		ms[i].done()
		for _, m := range ms {
			m.silent(why)
		}
	}
	ms[0].submits(pPID, u64(7))
	takeAll(ms, pPID, 1, u64(7)) // DONE would be there before it
	ms[0].done()
	for _, m := range ms {
		m.takesDone()
	}
	s.run.alive("nobody has sent FINI")
}

func oneClient(t *T) {
	s, ms := t.members(1)
	ms[0].submits(cVersion, u64(0))
	ms[0].takes(cVersion, 1, u64(0))
	s.end(ms)
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

func strangers(t *T) {
	s := t.serve(1, Auth{None: true})
	s.connect(0).close()
	s.connect(0).reset()
	g := s.connect(0)
	g.raw([]byte("GET / HTTP/1.0\r\n\r\n"))
	g.close()
	h := s.connect(0)
	h.raw(record{cmdAuth, u32(1)}.bytes()[:10])
	h.close()
	i := s.connect(0)
	i.auth(1)
	i.raw(record{cmdIMPI, u32(0)}.bytes()[:9])
	i.close()
	m := s.connect(0)
	m.auth(1)
	m.joins(0)
	m.takesSize(1)
	s.end([]*member{m})
}

func silentStranger(t *T) {
	s := t.serve(1, Auth{None: true})
	s.connect(0)
	s.connect(0).raw(record{cmdAuth, u32(1)}.bytes()[:10])
	m := s.connect(0)
	m.auth(1)
	m.joins(0)
	m.takesSize(1)
	s.end([]*member{m})
}

func wrongRank(t *T, rank uint32) {
	s := t.serve(2, Auth{None: true})
	a, b := s.connect(0), s.connect(1)
	a.auth(1)
	a.joins(0)
	b.auth(1)
	b.joins(int(int32(rank)))
	a.closed("the job cannot become complete")
	b.closed("its rank is impossible")
	s.run.fails("a client's rank is impossible")
}

func tooLong(t *T) {
	for _, n := range []int32{-1, 1<<31 - 1} {
		for _, cmd := range []command{cmdAuth, cmdIMPI, cmdColl} {
			s := t.serve(1, Auth{None: true})
			m := s.connect(0)
			if cmd != cmdAuth {
				m.auth(1)
			}
			if cmd == cmdColl {
				m.joins(0)
				m.takesSize(1)
			}
			m.send(fmt.Sprintf("%v of %d bytes", cmd, n), append(rawHeader(cmd, n), 0, 0, 0, 0))
			m.closed("so many bytes cannot be meant")
			if cmd == cmdColl {
				s.run.fails("its only client is lost")
				continue
			}
			s.end(s.join()) // it still waits for its clients
		}
	}
}

func lostClient(t *T) {
	for stage := range 3 {
		s, ms := t.members(2)
		if stage == 1 {
			ms[0].submits(cNHosts, u32(1))
		}
		if stage > 1 {
			for _, m := range ms {
				m.done()
			}
			ms[1].takesDone()
		}
		ms[0].close()
		ms[1].closed("client 0 is lost")
		s.run.fails("client 0 was lost before FINI")
	}
}

func wrongOrder(t *T) {
	for _, bad := range []struct {
		done bool
		r    record
	}{
		{false, record{cmdAuth, u32(1)}}, {false, record{cmdIMPI, u32(0)}}, {false, record{cmd: cmdFini}}, {true, coll(cNHosts, u32(1))}, {true, record{cmd: cmdDone}},
	} {
		s, ms := t.members(2)
		if bad.done {
			ms[0].done()
		}
		ms[0].record(bad.r)
		ms[0].closed("the command is out of order")
		ms[1].closed("client 0 is lost")
		s.run.fails("client 0 was lost before FINI")
	}
}

func shortPayloads(t *T) {
	s := t.serve(1, Auth{None: true})
	m := s.connect(0)
	m.record(record{cmdAuth, []byte{0, 0, 1}})
	m.closed("AUTH of 3 bytes")
	m = s.connect(0)
	m.auth(1)
	m.record(record{cmdIMPI, []byte{0, 0}})
	m.closed("IMPI of 2 bytes")
	s.end(s.join()) // it still waits for its clients
	s, ms := t.members(1)
	ms[0].record(record{cmdColl, []byte{0, 0, 1}})
	ms[0].closed("COLL of 3 bytes")
	s.run.fails("its only client is lost")
}

func oneTooMany(t *T) {
	s, ms := t.members(2)
	x := s.connect(1)
	_ = x.trySend("AUTH", record{cmdAuth, u32(1)}.bytes()) // it may be closed by now
	x.closed("the job has its clients")
	s.end(ms)
}

func skipsUnknown(t *T) {
	s, ms := t.members(2)
	ms[0].record(record{0x58595A5A, []byte("to be skipped")})
	for i, m := range ms {
		m.submits(cNHosts, u32(uint32(i)))
	}
	takeAll(ms, cNHosts, 3, u32(0, 1))
	ms[1].record(record{cmd: 0x58595A5A})
	s.end(ms)
}

func labelTwice(t *T) {
	for _, twice := range [][]label{{cNHosts, cNHosts}, {0}} {
		_, ms := t.members(2)
		for _, l := range twice {
			ms[0].submits(l, u32(1))
		}
		ms[0].closed("it cannot be answered")
	}
}
