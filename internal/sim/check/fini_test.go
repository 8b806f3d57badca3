package check

import "testing"

func TestFini(t *testing.T) {
	fini := pk{typ: 7}.bytes()
	leave := func(r *rig, host int) {
		for _, rank := range r.c.hosts[host].procs {
			r.ended(rank)
		}
	}
	runScripts(t, []script{
		{"a job that does nothing", "", func(r *rig) {}},
		{"with a proc that is alive", RuleFini, func(r *rig) {
			r.ended(0)
			r.write(AgentEnd(0), AgentEnd(1), fini)
		}},
		{"with a proc that said it has finished", "", func(r *rig) {
			r.ended(0)
			r.note(r.c.Finished(1))
			r.hop(AgentEnd(0), AgentEnd(1), fini)
			r.note(r.c.Cut(r.id(AgentEnd(0), AgentEnd(1)))) // end sends it again
			r.link(AgentEnd(0), AgentEnd(1))
			r.hop(AgentEnd(1), AgentEnd(0), []byte{0, 0, 0, 1})
		}},
		{"with a proc that crashed", "", func(r *rig) {
			r.ended(0)
			r.note(r.c.Crashed(ProcEnd(1)))
		}},
		{"from a proc", RuleFini, func(r *rig) { r.write(ProcEnd(0), AgentEnd(0), fini) }},
		{"to a proc", RuleFini, func(r *rig) { r.write(AgentEnd(0), ProcEnd(0), fini) }},
		{"on a direct link", RuleFini, func(r *rig) { r.write(ProcEnd(0), ProcEnd(2), fini) }},
		{"twice", RuleFini, func(r *rig) {
			leave(r, 0)
			r.write(AgentEnd(0), AgentEnd(1), fini)
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), fini)
		}},
		{"missing", RuleFini, func(r *rig) {
			leave(r, 0)
			leave(r, 1)
			r.hop(AgentEnd(0), AgentEnd(1), fini)
			r.must()
			r.note(r.c.Finish(true))
		}},
		{"not read", RuleConservation, func(r *rig) {
			leave(r, 0)
			leave(r, 1)
			r.hop(AgentEnd(0), AgentEnd(1), fini)
			r.write(AgentEnd(1), AgentEnd(0), fini)
			r.must()
			r.note(r.c.Finish(true))
		}},
		{"a packet behind it", RuleFini, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 1).bytes())
			leave(r, 0)
			r.write(AgentEnd(0), AgentEnd(1), fini)
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 3, 1).bytes())
		}},
		{"a PROTOACK behind it", RuleFini, func(r *rig) {
			r.carry(msg(3, 0, 1), msg(3, 0, 1))
			r.hop(ProcEnd(0), AgentEnd(0), ack(0, 3).bytes())
			leave(r, 0)
			r.write(AgentEnd(0), AgentEnd(1), fini)
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), ack(0, 3).bytes())
		}},
		{"a foreign host's PROTOACK behind it", "", func(r *rig) {
			r.carry(msg(0, 4, 1), msg(0, 4, 1))
			for rank := range 4 {
				r.ended(rank)
			}
			r.hop(AgentEnd(2), AgentEnd(0), append(fini, ack(4, 0).bytes()...))
			r.note(r.c.Cut(r.id(AgentEnd(0), AgentEnd(2)))) // end sends it again
			r.link(AgentEnd(2), AgentEnd(0))
			r.hop(AgentEnd(2), AgentEnd(0), []byte{0, 0, 0, 2})
		}},
		{"a foreign host's message behind it", RuleFini, func(r *rig) {
			r.write(AgentEnd(2), AgentEnd(0), fini)
			r.must()
			r.write(AgentEnd(2), AgentEnd(0), msg(4, 0, 1).bytes())
		}},
		{"a packet to a host that has finished", RuleFini, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 1).bytes())
			leave(r, 1)
			r.hop(AgentEnd(1), AgentEnd(0), fini)
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 3, 1).bytes())
		}},
		{"a packet that was begun before its FINI was read", RuleConservation, func(r *rig) {
			b := msg(0, 3, 1).bytes()
			r.hop(ProcEnd(0), AgentEnd(0), b)
			leave(r, 1)
			r.write(AgentEnd(1), AgentEnd(0), fini)
			r.write(AgentEnd(0), AgentEnd(1), b[:10])
			r.read(AgentEnd(1), AgentEnd(0))
			r.write(AgentEnd(0), AgentEnd(1), b[10:])
			r.must() // nobody reads it, which is the fault
			r.hop(AgentEnd(0), AgentEnd(2), nil)
			r.note(r.c.Finish(true))
		}},
		{"a PROTOACK to a host that has finished", "", func(r *rig) {
			r.carry(msg(3, 0, 1), msg(3, 0, 1))
			for rank := range 4 {
				if rank != 0 {
					r.ended(rank)
				}
			}
			r.hop(AgentEnd(1), AgentEnd(0), fini)
			r.hop(ProcEnd(0), AgentEnd(0), ack(0, 3).bytes())
			r.hop(AgentEnd(0), AgentEnd(1), ack(0, 3).bytes())
			r.note(r.c.Cut(r.id(AgentEnd(0), AgentEnd(1)))) // end sends it again
			r.link(AgentEnd(1), AgentEnd(0))
			r.hop(AgentEnd(1), AgentEnd(0), []byte{0, 0, 0, 1})
		}},
		{"a proc that has finished sends", RuleFini, func(r *rig) {
			r.note(r.c.Finished(0))
			r.carry(msg(0, 3, 1))
		}},
		{"a packet to a proc whose end was seen", RuleFini, func(r *rig) {
			id := r.id(ProcEnd(0), ProcEnd(2))
			r.note(r.c.Ended(id, false))
			r.note(r.c.SawEnd(id, true))
			r.must()
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
		}},
		{"a packet to a proc whose link was cut, and had an end for that", "", func(r *rig) {
			id := r.id(ProcEnd(0), ProcEnd(2))
			r.note(r.c.Ended(id, false))
			r.note(r.c.Cut(id))
			r.note(r.c.SawEnd(id, true))
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 1).bytes())
		}},
		{"a PROTOACK to a proc whose end was seen", "", func(r *rig) {
			id := r.id(ProcEnd(0), ProcEnd(2))
			r.hop(ProcEnd(2), ProcEnd(0), append(msg(2, 0, 1).bytes(), msg(2, 0, 1).bytes()...))
			r.note(r.c.Ended(id, false))
			r.note(r.c.SawEnd(id, true))
			r.write(ProcEnd(0), ProcEnd(2), ack(0, 2).bytes())
		}},
	})
}
