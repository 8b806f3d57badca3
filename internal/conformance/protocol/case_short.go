package protocol

import "fmt"

const refShort = "ch. 3, Short Messages"

func init() {
	register("short",
		Case{ID: "IMPI-3-SHORT-01", Level: Must, Needs: Program, Reference: refShort, Run: shortOut,
			Expect: "A message of up to the data length, 0 bytes included, leaves at once as one DATA packet."},
		Case{ID: "IMPI-3-SHORT-02", Level: Must, Needs: Program, Reference: refShort, Run: shortIn,
			Expect: "Messages of 0 bytes up to the data length are received, with their length in the status."},
		Case{ID: "IMPI-3-SHORT-03", Level: Must, Needs: Program, Reference: refShort, Run: shortModes,
			Expect: "Isend, Bsend, Ibsend, Rsend and Irsend of a short message are one DATA packet as well."},
		Case{ID: "IMPI-3-SHORT-04", Level: Must, Needs: Program, Reference: refShort + "; ch. 2, C_DATALEN", Run: shortOfOne,
			Expect: "With a data length of 1, a message of one byte is short."},
		Case{ID: "IMPI-3-SHORT-05", Level: Must, Needs: Program, Reference: refShort, Run: shortUnanswered,
			Expect: "Nothing is sent in answer to a DATA packet that is a whole message, received or not."},
	)
}

// edges are lengths up to a data length.
func edges(d int) []int { return []int{0, 1, 2, d - 1, d} }

func shortOut(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range edges(int(k.datalen)) {
		k.tell("send dst=0 tag=%d n=%d seed=%d", i, n, i)
		k.whole(pkData, int32(i), bytesOf(i, n), fmt.Sprintf("the message of %d bytes", n))
	}
	k.finish()
}

func shortIn(t *T) {
	k := t.talk(setup{datalen: 100})
	for i, n := range edges(int(k.datalen)) {
		k.give(k.out(pkData, int32(i), bytesOf(i, n)))
		k.tell("recv src=0 tag=%d n=200", i).received(k.p, int32(i), i, n)
	}
	k.finish()
}

func shortModes(t *T) {
	k := t.talk(setup{})
	for i, mode := range []string{"bsend", "rsend", "isend", "ibsend", "irsend"} {
		k.tell("%s dst=0 tag=%d n=9 seed=%d req=1", mode, i, i)
		k.whole(pkData, int32(i), bytesOf(i, 9), "the message of "+mode)
		if mode[0] == 'i' {
			k.tell("wait req=1").is("cancelled", 0)
		}
	}
	k.finish()
}

func shortOfOne(t *T) {
	k := t.talk(setup{datalen: 1, ackmark: 20, hiwater: 40})
	k.tell("send dst=0 tag=1 n=1 seed=7")
	k.whole(pkData, 1, bytesOf(7, 1), "the message of one byte")
	k.give(k.out(pkData, 1, bytesOf(8, 1)))
	k.tell("recv src=0 tag=1 n=1").received(k.p, 1, 8, 1)
	k.finish()
}

func shortUnanswered(t *T) {
	k := t.talk(setup{})
	for i := range 3 {
		k.give(k.out(pkData, int32(i), bytesOf(i, 5)))
	}
	k.tell("recv src=0 tag=0 n=5").received(k.p, 0, 0, 5)
	k.idle("nothing answers a DATA packet")
	for i := 1; i < 3; i++ {
		k.tell("recv src=0 tag=%d n=5", i).received(k.p, int32(i), i, 5)
	}
	k.idle("nothing answers a DATA packet")
	k.finish()
}
