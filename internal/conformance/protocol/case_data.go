package protocol

import "fmt"

const refData = "ch. 3, User Data (MPI-2, 9.5.2)"

func init() {
	for i, k := range kinds {
		register("data", Case{
			ID: fmt.Sprintf("IMPI-3-DATA-%02d", i+1), Level: Must, Needs: Program, Reference: refData,
			Expect: fmt.Sprintf("Elements of type %s travel as external32, %d bytes each, big-endian, one after the other.", k.name, k.width),
			Run:    func(t *T) { typed(t, k) },
		})
	}
	register("data",
		Case{ID: "IMPI-3-DATA-20", Level: Must, Needs: Program, Reference: refData, Run: negative,
			Expect: "Negative numbers travel as two's complement, and as IEEE floating point; LONG is extended with its sign."},
		Case{ID: "IMPI-3-DATA-21", Level: Must, Needs: Program, Reference: refData + "; " + refLong, Run: typedLong,
			Expect: "The data length cuts a long message in any place, also inside an element."},
	)
}

func typed(t *T, e kind) {
	k := t.talk(setup{})
	for i, n := range []int{1, 9} {
		k.tell("send dst=0 tag=%d type=%s n=%d seed=%d", i, e.name, n, i+3)
		k.whole(pkData, int32(i), e.pattern(i+3, n), "the message of type "+e.name)
		k.give(k.out(pkData, int32(i), e.pattern(i+5, n)))
		a := k.tell("recv src=0 tag=%d type=%s n=%d", i, e.name, n)
		a.is("count", n)
		a.holds(e.values(i+5, n))
	}
	k.finish()
}

func negative(t *T) {
	k := t.talk(setup{})
	for i, name := range []string{"int", "long", "llong", "double"} {
		e := kindOf(name)
		k.tell("send dst=0 tag=%d type=%s n=5 seed=-17", i, name)
		k.whole(pkData, int32(i), e.pattern(-17, 5), "the message of type "+name)
		k.give(k.out(pkData, int32(i), e.pattern(-2000000000, 5)))
		a := k.tell("recv src=0 tag=%d type=%s n=5", i, name)
		a.is("count", 5)
		a.holds(e.values(-2000000000, 5))
	}
	k.finish()
}

func typedLong(t *T) {
	k := t.talk(setup{datalen: 13})
	for i, name := range []string{"double", "long", "short"} {
		e := kindOf(name)
		data := e.pattern(i, 20)
		k.tell("isend dst=0 tag=5 type=%s n=20 seed=%d req=1", name, i)
		first := k.take(pkDataSync, "the first packet")
		k.isFirst(&first, 5, len(data), "the first packet")
		k.hasData(&first, data[:13], "the first packet")
		k.send(k.answer(pkSyncAck, first.srqid, 9))
		k.rests(first, 9, data, "the message")
		k.tell("wait req=1")

		got := k.begin("recv src=0 tag=6 type=%s n=20", name)
		theirs := k.long(6, 31, data)
		k.rest(theirs, k.syncAcked(theirs, "the message").drqid, data)
		a := got.ok()
		a.is("count", 20)
		a.holds(e.values(i, 20))
	}
	k.finish()
}
