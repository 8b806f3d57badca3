package protocol

import (
	"errors"
	"io"
)

const refFini = "ch. 3, Finalization"

func init() {
	register("shutdown",
		Case{ID: "IMPI-3-FINAL-01", Level: Must, Needs: Program, Run: barrierFirst, Reference: refFini,
			Expect: "MPI_Finalize begins with a barrier on MPI_COMM_WORLD: tag 110, context 1, no data; before its release there is no FINI."},
		Case{ID: "IMPI-3-FINAL-02", Level: Must, Needs: Program, Run: waitsForMasters, Reference: refFini,
			Expect: "Master 0 waits for the barrier's messages of all masters before it releases any of them."},
		Case{ID: "IMPI-3-FINAL-03", Level: Must, Needs: Program, Run: oneFiniEach, Reference: refFini,
			Expect: "Each host sends exactly one FINI on each channel, once all of its procs have passed the barrier."},
		Case{ID: "IMPI-3-FINAL-04", Level: Must, Needs: Program, Run: waitsForFinis, Reference: refFini,
			Expect: "A channel stays open until FINI has gone both ways, and FINI goes to the server only when all channels have ended so."},
		Case{ID: "IMPI-3-FINAL-05", Level: Must, Needs: Program, Run: earlyFini, Reference: refFini,
			Expect: "A peer's FINI may come together with the barrier's release."},
		Case{ID: "IMPI-3-FINAL-06", Level: Should, Needs: Program, Run: lateAck, Reference: refFini,
			Expect: "PROTOACKs that come after the host's own FINI are taken."},
		Case{ID: "IMPI-3-FINAL-07", Level: Must, Needs: Program, Run: wholeJob(setup{iutHosts: []int{3}}), Reference: refFini,
			Expect: "Of a client with several procs only the master takes part in the barrier's messages."},
		Case{ID: "IMPI-3-FINAL-08", Level: Must, Needs: Program, Run: wholeJob(setup{others: many(5)}), Reference: "ch. 4, Barrier",
			Expect: "With six clients the barrier is a tree: the last client is master 5, whose parent is 1."},
		Case{ID: "IMPI-3-FINAL-09", Level: Must, Needs: Program, Run: wholeJob(setup{place: first, others: many(5)}), Reference: "ch. 4, Barrier",
			Expect: "With six clients, master 0 of the tree hears 4, 2 and 1 and releases 1, 2 and 4."},
		Case{ID: "IMPI-3-FINAL-10", Level: Must, Needs: Program, Run: wholeJob(setup{place: middle, others: many(5)}), Reference: "ch. 4, Barrier",
			Expect: "With six clients, master 1 of the tree hears 5 and 3, tells 0, and releases 3 and 5 when it is released."},
		Case{ID: "IMPI-3-FINAL-11", Level: Must, Needs: Program, Run: wholeJob(setup{place: first, others: many(3)}), Reference: "ch. 2, Client labels",
			Expect: "With four clients, as many as C_COLL_MAXLINEAR, the barrier is linear."},
		Case{ID: "IMPI-3-FINAL-21", Level: Should, Needs: Program, Run: peerDies, Reference: refFini,
			Expect: "The end of a channel without FINI is the death of a peer: the client ends with a status that is not 0."},
		Case{ID: "IMPI-3-FINAL-22", Level: Should, Needs: Program, Run: programExits, Reference: "ch. 2, FINI command",
			Expect: "When a proc exits without MPI_Finalize, the client sends no FINI to the server, ends its channels without FINI, and ends with a status that is not 0."},
		Case{ID: "IMPI-3-FINAL-23", Level: Should, Needs: Program, Run: programAborts, Reference: "ch. 2, FINI command",
			Expect: "The same after MPI_Abort."},
	)
}

func barrierFirst(t *T) {
	j := t.join(setup{})
	j.finalize()
	j.takeBarrier(j.iut(0), j.peer(0))
	ch := j.channels[0]
	ch.stays("the barrier has not been released")
	j.send(j.collective(pkData, j.peer(0), j.iut(0), tagBarrier, nil))
	ch.takesFini()
}

func waitsForMasters(t *T) {
	j := t.join(setup{place: first, others: [][]int{{2}, {1}, {1}}})
	j.finalize()
	for _, i := range []int{3, 1} { // in another order than it receives them
		j.send(j.collective(pkData, j.masters()[i], j.iut(0), tagBarrier, nil))
	}
	for _, ch := range j.channels {
		ch.stays("client 2 has not come to the barrier")
	}
	j.send(j.collective(pkData, j.masters()[2], j.iut(0), tagBarrier, nil))
	for _, m := range j.masters()[1:] {
		j.takeBarrier(j.iut(0), m)
	}
}

func oneFiniEach(t *T) {
	j := t.join(setup{iutHosts: []int{1, 2}, others: [][]int{{1, 1}}})
	j.do(j.iut(1), "finalize")
	j.do(j.iut(2), "finalize")
	j.do(j.iut(0), "ping")
	for _, ch := range j.channels {
		ch.empty("one proc has not called MPI_Finalize")
		if ch.finished() {
			t.Fatalf("%s: FINI came before all procs have called MPI_Finalize", ch.c.name)
		}
	}
	j.do(j.iut(0), "finalize")
	j.barrier()
	j.farewell()
}

func waitsForFinis(t *T) {
	half := func() *job {
		j := t.join(setup{others: [][]int{{2}, {1}}})
		j.finalize()
		j.barrier()
		for _, ch := range j.channels {
			ch.takesFini()
		}
		j.channels[0].send(packet{typ: pkFini})
		return j
	}
	const why = "FINI has not gone over one of the channels"
	half().unanswered(why)
	j := half()
	j.conn.silent(why)
	if err := j.channels[1].failure(); err != nil {
		t.Fatalf("%s: %s before FINI went the other way", j.channels[1].c.name, ending(err))
	}
	j.channels[1].send(packet{typ: pkFini})
	for _, ch := range j.channels {
		ch.hangUp()
	}
	j.finished()
	j.run.succeeds()
}

func earlyFini(t *T) {
	j := t.join(setup{})
	j.finalize()
	j.takeBarrier(j.iut(0), j.peer(0))
	ch := j.channels[0]
	release, fini := j.collective(pkData, j.peer(0), j.iut(0), tagBarrier, nil), packet{typ: pkFini}
	ch.c.send("the barrier's release and FINI", append(release.bytes(), fini.bytes()...))
	ch.takesFini()
	ch.hangUp()
	j.finished()
	j.run.succeeds()
}

func lateAck(t *T) {
	j := t.join(setup{ackmark: 2, hiwater: 8})
	ch := j.channels[0]
	ch.handle()
	me, it := j.peer(0), j.iut(0)
	for range 3 {
		j.do(it, "send dst=0 tag=1 type=byte n=1")
		j.next(it, me, pkData, "a message")
	}
	j.finalize()
	j.barrier() // the fourth packet
	ch.takesFini()
	for range 2 {
		ch.send(packet{typ: pkProtoAck, src: me.id, dest: it.id})
	}
	j.farewell()
}

func peerDies(t *T) {
	j := t.join(setup{})
	j.channels[0].c.close()
	j.run.fails("its peer has died")
}

// deserted checks how a client ends whose proc ended without MPI_Finalize.
func (j *job) deserted() {
	ch := j.channels[0]
	if err := ch.ends("a proc of it has died"); ch.finished() || !errors.Is(err, io.EOF) && !isReset(err) {
		j.t.Fatalf("%s: %v; a FINI came: %v", ch.c.name, err, ch.finished())
	}
	ch.c.close()
	if rest := j.conn.closed("a proc of the client has died"); len(rest.data) >= 4 && string(rest.data[:4]) == cmdFini.String() {
		j.t.Fatalf("%s: FINI came", j.conn.name)
	}
	j.run.fails("one of its procs has died")
}

func programExits(t *T) {
	j := t.join(setup{})
	j.start(j.iut(0), "exit code=3")
	j.deserted()
}

func programAborts(t *T) {
	j := t.join(setup{})
	j.start(j.iut(0), "abort code=3")
	j.deserted()
}
