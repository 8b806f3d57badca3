package protocol

const refProbe = "ch. 3, Message Probing"

func init() {
	register("probe",
		Case{ID: "IMPI-3-PROBE-01", Level: Must, Needs: Program, Reference: refProbe, Run: probeLong,
			Expect: "A long message can be probed once its first packet is there; the count is that of the whole message."},
		Case{ID: "IMPI-3-PROBE-02", Level: Must, Needs: Program, Reference: refProbe, Run: probeSilent,
			Expect: "Probing sends no packet: SYNCACK follows the receive."},
		Case{ID: "IMPI-3-PROBE-03", Level: Must, Needs: Program, Reference: refProbe + "; MPI-1, 3.8", Run: probeKeeps,
			Expect: "A probed message stays where it is; Iprobe finds what is there and nothing else."},
		Case{ID: "IMPI-3-PROBE-04", Level: Must, Needs: Program, Reference: refProbe + "; MPI-1, 3.8", Run: probeWaits,
			Expect: "Probe waits until a message comes."},
	)
}

func probeLong(t *T) {
	k := t.talk(setup{datalen: 100})
	data := bytesOf(1, 350)
	first := k.long(5, 12, data)
	a := k.tell("probe src=0 tag=5")
	a.is("source", 0)
	a.is("tag", 5)
	a.is("count", 350)
	got := k.begin("recv src=0 tag=5 n=350")
	ack := k.syncAcked(first, "the long message")
	k.rest(first, ack.drqid, data)
	got.ok().received(k.p, 5, 1, 350)
	k.finish()
}

func probeSilent(t *T) {
	k := t.talk(setup{datalen: 100})
	p := k.out(pkDataSync, 5, bytesOf(1, 3))
	p.srqid = 12
	k.give(p)
	first := k.long(6, 13, bytesOf(1, 101))
	for _, op := range []string{"probe", "iprobe"} {
		k.tell("%s src=0 tag=5", op).is("count", 3)
		k.tell("%s src=any tag=6", op).is("count", 101)
	}
	k.idle("the messages were probed and not received")
	k.tell("recv src=0 tag=5 n=3").received(k.p, 5, 1, 3)
	k.syncAcked(p, "the probed message")
	got := k.begin("recv src=0 tag=6 n=101")
	ack := k.syncAcked(first, "the long message")
	k.rest(first, ack.drqid, bytesOf(1, 101))
	got.ok().received(k.p, 6, 1, 101)
	k.finish()
}

func probeKeeps(t *T) {
	k := t.talk(setup{})
	k.tell("iprobe src=0 tag=5").is("found", 0)
	k.give(k.out(pkData, 5, bytesOf(1, 3)))
	k.give(k.out(pkData, 6, bytesOf(2, 4)))
	k.give(k.out(pkData, 5, bytesOf(3, 5)))
	k.tell("iprobe src=0 tag=7").is("found", 0)
	for range 2 {
		k.tell("iprobe src=any tag=5").is("count", 3)
		k.tell("iprobe src=0 tag=any").is("tag", 5)
		k.tell("iprobe src=0 tag=6").is("count", 4)
	}
	k.tell("recv src=0 tag=5 n=9").received(k.p, 5, 1, 3)
	k.tell("iprobe src=0 tag=any").is("tag", 6)
	k.tell("recv src=0 tag=5 n=9").received(k.p, 5, 3, 5)
	k.tell("recv src=0 tag=6 n=9").received(k.p, 6, 2, 4)
	k.tell("iprobe src=0 tag=any").is("found", 0)
	k.finish()
}

func probeWaits(t *T) {
	k := t.talk(setup{})
	c := k.begin("probe src=0 tag=5")
	k.give(k.out(pkData, 6, bytesOf(1, 3)))
	k.ch.still("a probe sends nothing")
	if !c.pending() {
		t.Fatalf("Probe has returned without a message that fits")
	}
	k.give(k.out(pkData, 5, bytesOf(2, 4)))
	c.ok().is("count", 4)
	k.tell("recv src=0 tag=5 n=9").received(k.p, 5, 2, 4)
	k.tell("recv src=0 tag=6 n=9").received(k.p, 6, 1, 3)
	k.finish()
}
