package check

import "testing"

func TestWindow(t *testing.T) {
	full := func(r *rig) {
		for range testHiWater {
			r.write(ProcEnd(0), AgentEnd(0), msg(0, 2, 1).bytes())
		}
	}
	runScripts(t, []script{
		{"up to hiwater, and on with each PROTOACK", "", func(r *rig) {
			for range 5 {
				r.carry(msg(0, 3, 1), msg(0, 3, 1), ack(3, 0))
			}
			r.carry(msg(0, 3, 1), msg(0, 3, 1), msg(0, 3, 1), msg(0, 3, 1), ack(3, 0), ack(3, 0))
		}},
		{"one packet too many", RuleWindow, func(r *rig) {
			full(r)
			r.must()
			r.write(ProcEnd(0), AgentEnd(0), msg(0, 2, 1).bytes())
		}},
		{"a PROTOACK that was not read opens nothing", RuleWindow, func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1))
			r.hop(ProcEnd(3), AgentEnd(1), ack(3, 0).bytes())
			r.hop(AgentEnd(1), AgentEnd(0), ack(3, 0).bytes())
			r.write(AgentEnd(0), ProcEnd(0), ack(3, 0).bytes())
			r.carry(msg(0, 3, 1), msg(0, 3, 1))
			r.must()
			r.carry(msg(0, 3, 1))
		}},
		{"half a PROTOACK opens nothing", RuleWindow, func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1), msg(0, 3, 1), msg(0, 3, 1))
			r.hop(ProcEnd(3), AgentEnd(1), ack(3, 0).bytes())
			r.hop(AgentEnd(1), AgentEnd(0), ack(3, 0).bytes())
			r.write(AgentEnd(0), ProcEnd(0), ack(3, 0).bytes())
			r.readSome(AgentEnd(0), ProcEnd(0), HeaderSize-1)
			r.must()
			r.carry(msg(0, 3, 1))
		}},
		{"pairs have windows of their own", "", func(r *rig) {
			for _, dest := range []int{1, 3} {
				r.carry(msg(0, dest, 1), msg(0, dest, 1), msg(0, dest, 1), msg(0, dest, 1))
				r.carry(ack(dest, 0), ack(dest, 0))
			}
			r.carry(msg(3, 0, 1))
		}},
		{"PROTOACKs are not counted", "", func(r *rig) {
			for range testHiWater + 1 {
				r.carry(msg(0, 3, 1), msg(0, 3, 1), ack(3, 0))
			}
		}},
		{"SYNCACK and CANCEL packets are", RuleWindow, func(r *rig) {
			r.carry(sync(3, 0, 1, 4), syncAck(0, 3, 1, 0), sync(3, 0, 2, 4), cancel(3, 0, 2), ack(0, 3))
			r.carry(yes(0, 3, 2), sync(0, 3, 8, 1), cancel(0, 3, 8))
			r.must()
			r.carry(msg(0, 3, 1))
		}},
		{"a foreign host's procs have windows too", RuleWindow, func(r *rig) {
			for range testHiWater {
				r.carry(msg(4, 0, 1))
			}
			r.must()
			r.carry(msg(4, 0, 1))
		}},
		{"direct links count too", RuleWindow, func(r *rig) {
			for range testHiWater {
				r.hop(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
			}
			r.must()
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
		}},
	})
}

func TestAck(t *testing.T) {
	direct := func(r *rig, src, dest, n int) {
		for range n {
			r.hop(ProcEnd(src), ProcEnd(dest), msg(src, dest, 1).bytes())
		}
	}
	runScripts(t, []script{
		{"a PROTOACK too early", RuleAck, func(r *rig) {
			r.carry(msg(0, 3, 1), ack(3, 0))
		}},
		{"a PROTOACK for a packet that is not whole", RuleAck, func(r *rig) {
			r.carry(msg(0, 3, 1))
			w := way(0, 3)
			r.hop(w[0], w[1], msg(0, 3, 5).bytes())
			r.hop(w[1], w[2], msg(0, 3, 5).bytes())
			r.write(w[2], w[3], msg(0, 3, 5).bytes())
			r.readSome(w[2], w[3], HeaderSize+4)
			r.must()
			r.carry(ack(3, 0))
		}},
		{"two PROTOACKs for one ackmark", RuleAck, func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1), ack(3, 0))
			r.must()
			r.carry(ack(3, 0))
		}},
		{"a PROTOACK the wrong way", RuleAck, func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1), ack(0, 3))
		}},
		{"a PROTOACK missing in the end", RuleAck, func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1))
			r.must()
			r.end()
		}},
		{"a PROTOACK missing from a foreign proc", RuleAck, func(r *rig) {
			r.carry(msg(0, 4, 1), msg(0, 4, 1))
			r.must()
			r.end()
		}},
		{"a direct link that ended before all was read needs none", "", func(r *rig) {
			direct(r, 0, 2, 3)
			r.hop(ProcEnd(2), ProcEnd(0), ack(2, 0).bytes())
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
			r.note(r.c.Ended(r.id(ProcEnd(0), ProcEnd(2)), true))
			r.read(ProcEnd(0), ProcEnd(2))
		}},
		{"but for what was read before", RuleAck, func(r *rig) {
			direct(r, 0, 2, 4)
			r.later = aTurn
			r.hop(ProcEnd(2), ProcEnd(0), ack(2, 0).bytes())
			r.note(r.c.Ended(r.id(ProcEnd(0), ProcEnd(2)), true))
			r.must()
			r.end()
		}},
		{"and not just now", "", func(r *rig) {
			direct(r, 0, 2, 2)
			r.later = aTurn / 2
			direct(r, 0, 2, 2)
			r.hop(ProcEnd(2), ProcEnd(0), ack(2, 0).bytes())
			r.note(r.c.Ended(r.id(ProcEnd(0), ProcEnd(2)), true))
		}},
		{"if there was room to say so", "", func(r *rig) {
			direct(r, 0, 2, 4)
			r.write(ProcEnd(2), ProcEnd(0), ack(2, 0).bytes())
			r.note(r.c.Ended(r.id(ProcEnd(0), ProcEnd(2)), true))
			r.read(ProcEnd(2), ProcEnd(0))
		}},
		{"half a window needs none", "", func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1), msg(0, 3, 1), ack(3, 0))
		}},
	})
}

func TestRoute(t *testing.T) {
	runScripts(t, []script{
		{"the two directions may differ", "", func(r *rig) {
			r.hop(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
			r.carry(msg(2, 0, 1))
		}},
		{"a second way", RuleRoute, func(r *rig) {
			r.hop(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
			r.must()
			r.carry(msg(0, 2, 1))
		}},
		{"a second way when the first is cut", "", func(r *rig) {
			r.hop(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
			r.note(r.c.Cut(r.id(ProcEnd(0), ProcEnd(2))))
			r.carry(msg(0, 2, 1))
		}},
	})
}
