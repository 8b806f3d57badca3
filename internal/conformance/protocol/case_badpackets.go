package protocol

import "math"

const (
	refErrors = "ch. 3, Packet Format (errors)"
	refEnd    = "ch. 3, Finalization; ch. 2, Channels"
)

func init() {
	register("bad packets",
		Case{ID: "IMPI-3-BAD-01", Level: Should, Needs: Program, Reference: refErrors,
			Run:    fatal(func(k *talk) { p := k.out(pkData, 5, nil); p.typ = 8; k.sends(p) }),
			Expect: "A pk_type that IMPI 0.0 does not have ends the IUT with a diagnostic: nobody knows where the next packet begins."},
		Case{ID: "IMPI-3-BAD-02", Level: Should, Needs: Program, Reference: refErrors,
			Run:    fatal(func(k *talk) { p := k.out(pkData, 5, nil); p.src.pid = 4711; k.sends(p) }),
			Expect: "A pk_src that is no proc of the job ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-03", Level: Should, Needs: Program, Reference: refErrors,
			Run:    fatal(func(k *talk) { p := k.out(pkData, 5, nil); p.dest.pid = 4711; k.sends(p) }),
			Expect: "A pk_dest that is no proc of the job ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-04", Level: Should, Needs: Program, Reference: refErrors,
			Run:    fatal(func(k *talk) { p := k.out(pkData, 5, nil); p.src = k.u.id; k.sends(p) }),
			Expect: "A pk_src that is a proc of the IUT itself ends it with a diagnostic."},
		Case{ID: "IMPI-3-BAD-05", Level: Should, Needs: Program, Reference: refErrors,
			Run:    fatal(func(k *talk) { p := k.out(pkData, 5, nil); p.dest = k.p.id; k.sends(p) }),
			Expect: "A pk_dest that is a proc of the sender's own host ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-06", Level: Should, Needs: Program, Reference: refErrors,
			Run:    fatal(func(k *talk) { k.sends(k.out(pkData, 5, make([]byte, k.datalen+1))) }),
			Expect: "A pk_len above the data length ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-07", Level: Should, Needs: Program, Reference: refErrors,
			Run: fatal(func(k *talk) {
				p := k.out(pkData, 5, nil)
				p.len, p.msglen = math.MaxUint32, math.MaxUint64
				k.sends(p)
			}),
			Expect: "A pk_len of four gigabytes ends the IUT with a diagnostic, without memory for it."},
		Case{ID: "IMPI-3-BAD-08", Level: Should, Needs: Program, Reference: refErrors,
			Run:    fatal(func(k *talk) { p := k.out(pkData, 5, bytesOf(1, 20)); p.msglen = 19; k.sends(p) }),
			Expect: "A pk_len above pk_msglen ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-09", Level: Should, Needs: Program, Reference: refErrors + "; " + refLong,
			Run:    fatal(func(k *talk) { k.sends(piece(k.out(pkDataSync, 5, bytesOf(1, 200)), 4711, bytesOf(1, 20))) }),
			Expect: "A continuation whose pk_drqid and pk_srqid belong to no message that goes on ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-10", Level: Should, Needs: Program, Reference: refErrors + "; " + refLong, Run: fatal(tooMuch),
			Expect: "A message with more bytes than pk_msglen said ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-11", Level: Should, Needs: Program, Reference: refErrors, Run: strayAnswers,
			Expect: "A SYNCACK or CANCELNO for which nobody waits, or that comes twice, does no harm."},
		Case{ID: "IMPI-3-BAD-12", Level: Should, Needs: Program, Reference: refErrors + "; " + refCancel,
			Run:    fatal(func(k *talk) { k.sends(k.answer(pkCancelYes, 4711, 0)) }),
			Expect: "A CANCELYES that nobody asked for ends the IUT with a diagnostic: it says that a message was destroyed."},
		Case{ID: "IMPI-3-BAD-13", Level: Should, Needs: Program, Reference: refErrors + "; " + refFlow, Run: fatal(tooMany),
			Expect: "More than hiwater packets that are not acknowledged end the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-14", Level: Should, Needs: Program, Reference: refEnd,
			Run:    fatal(func(k *talk) { k.ch.cut(packetOf(k, 50), 100) }),
			Expect: "A channel that ends inside a header ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-15", Level: Should, Needs: Program, Reference: refEnd,
			Run:    fatal(func(k *talk) { k.ch.cut(packetOf(k, 50), 150) }),
			Expect: "A channel that ends inside the data of a packet ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-16", Level: Should, Needs: Program, Reference: refEnd,
			Run:    fatal(func(k *talk) { k.ch.c.close() }),
			Expect: "A channel that ends without FINI ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-17", Level: Should, Needs: Program, Reference: refEnd,
			Run:    fatal(func(k *talk) { k.sends(packet{typ: pkFini}); k.sends(packetOf(k, 5)) }),
			Expect: "A packet with data after FINI ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-18", Level: Should, Needs: Program, Reference: refEnd,
			Run:    fatal(func(k *talk) { k.sends(packet{typ: pkFini}); k.sends(packet{typ: pkFini}) }),
			Expect: "A second FINI ends the IUT with a diagnostic."},
		Case{ID: "IMPI-3-BAD-19", Level: Should, Needs: Program, Reference: refEnd, Run: acksAfterFini,
			Expect: "A PROTOACK may come after FINI."},
		Case{ID: "IMPI-3-BAD-20", Level: Should, Needs: Program, Reference: refEnd,
			Run:    fatal(func(k *talk) { k.begin("recv src=0 tag=5 n=5"); k.ch.c.reset() }),
			Expect: "A channel that is reset while a program waits for a message ends the IUT with a diagnostic."},
	)
}

// packetOf is a message of n bytes.
func packetOf(k *talk, n int) packet { return k.out(pkData, 5, bytesOf(1, n)) }

// sends sends a packet that may be the last the IUT reads.
func (k *talk) sends(p packet) { _ = k.ch.write(&p) } // the IUT may have closed the channel

// cut sends the beginning of a packet and closes the channel.
func (ch *channel) cut(p packet, n int) {
	_ = ch.c.trySend("the beginning of "+p.String(), p.bytes()[:n])
	ch.c.close()
}

// fatal is a case in which the IUT must end, because of what spoil does, by itself and
// not by a signal, with a status that is not 0 and words about it.
func fatal(spoil func(*talk)) func(*T) {
	return func(t *T) {
		k := t.talk(setup{datalen: 100})
		k.tell("ping")
		before := k.run.words.Load()
		spoil(k)
		k.run.fails("its peer has broken the protocol")
		if k.run.words.Load() == before {
			t.Fatalf("the IUT has ended without a word about the reason")
		}
	}
}

func tooMuch(k *talk) {
	k.tell("irecv src=0 tag=5 n=300 req=1")
	data := bytesOf(1, 250)
	first := k.long(5, 7, data)
	ack := k.syncAcked(first, "the long message")
	k.sends(piece(first, ack.drqid, data[:100]))
	k.sends(piece(first, ack.drqid, data[:51]))
}

// tooMany does not wait for PROTOACKs of a proc that sends them; the count is of those
// that it cannot have sent yet.
func tooMany(k *talk) {
	var all []packet
	for range 500 {
		all = append(all, k.out(pkData, 5, nil))
	}
	k.ch.handle()
	k.ch.chopped(0, all...)
}

func strayAnswers(t *T) {
	k := t.talk(setup{})
	k.give(k.answer(pkSyncAck, 4711, 0))
	k.give(k.answer(pkSyncAck, 0, 0))
	k.give(k.answer(pkCancelNo, 4711, 0))
	k.tell("issend dst=0 tag=%d n=3 seed=1 req=1", ackTag)
	p := k.whole(pkDataSync, ackTag, bytesOf(1, 3), "the message")
	for range 2 {
		k.give(k.answer(pkSyncAck, p.srqid, 0))
	}
	k.tell("wait req=1").is("cancelled", 0)
	k.give(k.answer(pkSyncAck, p.srqid, 0))
	k.tell("issend dst=0 tag=%d n=3 seed=2 req=2", ackTag)
	q := k.whole(pkDataSync, ackTag, bytesOf(2, 3), "the next message")
	k.give(k.answer(pkSyncAck, p.srqid, 0)) // late, and for another
	k.tell("test req=2").is("done", 0)
	k.give(k.answer(pkSyncAck, q.srqid, 0))
	k.tell("wait req=2").is("cancelled", 0)
	k.idle("nothing was wrong")
	k.finish()
}

// acksAfterFini ends the job as finish does, but for a PROTOACK that comes late.
func acksAfterFini(t *T) {
	k := t.talk(setup{ackmark: 2, hiwater: 4})
	k.ch.handle()
	for i := range 2 {
		k.tell("send dst=0 tag=1 n=1 seed=%d", i)
		k.whole(pkData, 1, bytesOf(i, 1), "the message")
	}
	k.finalize()
	k.barrier()
	k.ch.send(packet{typ: pkFini})
	k.acks()
	k.ch.takesFini()
	k.ch.hangUp()
	if err := k.ch.ends("both sides have sent FINI"); ending(err) != "the channel was closed" {
		t.Fatalf("%s: %v", k.ch.c.name, err)
	}
	k.finished()
	k.run.succeeds()
}
