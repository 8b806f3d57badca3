package check

import (
	"testing"
	"time"
)

func TestConservation(t *testing.T) {
	bad := func(b []byte, at int) []byte {
		b[at] ^= 0x10
		return b
	}
	runScripts(t, []script{
		{"agents pass packets on in the order of each pair", "", func(r *rig) {
			a, b, c := msg(0, 3, 1), msg(0, 3, 2), msg(1, 3, 3)
			r.hop(ProcEnd(0), AgentEnd(0), append(a.bytes(), b.bytes()...))
			r.hop(ProcEnd(1), AgentEnd(0), c.bytes())
			r.hop(AgentEnd(0), AgentEnd(1), append(append(c.bytes(), a.bytes()...), b.bytes()...))
			r.hop(AgentEnd(1), ProcEnd(3), append(append(a.bytes(), b.bytes()...), c.bytes()...))
			r.carry(ack(3, 0))
		}},
		{"a PROTOACK passes data", "", func(r *rig) {
			r.carry(msg(3, 0, 1), msg(3, 0, 1))
			r.hop(ProcEnd(0), AgentEnd(0), append(msg(0, 3, 1).bytes(), ack(0, 3).bytes()...))
			r.hop(AgentEnd(0), AgentEnd(1), append(ack(0, 3).bytes(), msg(0, 3, 1).bytes()...))
			r.hop(AgentEnd(1), ProcEnd(3), append(ack(0, 3).bytes(), msg(0, 3, 1).bytes()...))
		}},
		{"an agent makes a packet up", RuleConservation, func(r *rig) {
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 3, 1).bytes())
		}},
		{"an agent passes a packet on before it is whole", RuleConservation, func(r *rig) {
			b := msg(0, 3, 8).bytes()
			r.write(ProcEnd(0), AgentEnd(0), b)
			r.readSome(ProcEnd(0), AgentEnd(0), len(b)-1)
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), b)
		}},
		{"an agent doubles a packet", RuleConservation, func(r *rig) {
			r.carry(msg(0, 3, 1))
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 3, 1).bytes())
		}},
		{"an agent doubles a PROTOACK", RuleConservation, func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1), ack(3, 0))
			r.must()
			r.write(AgentEnd(0), ProcEnd(0), ack(3, 0).bytes())
		}},
		{"an agent swaps two packets", RuleConservation, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), append(msg(0, 3, 1).bytes(), msg(0, 3, 2).bytes()...))
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 3, 2).bytes())
		}},
		{"an agent skips a packet", RuleConservation, func(r *rig) {
			r.carry(msg(0, 3, 1))
			r.hop(ProcEnd(0), AgentEnd(0), append(msg(0, 3, 2).bytes(), msg(0, 3, 3).bytes()...))
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 3, 3).bytes())
		}},
		{"an agent changes a field that nobody looks at", RuleConservation, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 1).bytes())
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), bad(msg(0, 3, 1).bytes(), offSeqnum))
		}},
		{"an agent changes data", RuleConservation, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 8).bytes())
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), bad(msg(0, 3, 8).bytes(), HeaderSize+7))
		}},
		{"the last agent loses a packet", RuleConservation, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 8).bytes())
			r.hop(AgentEnd(0), AgentEnd(1), msg(0, 3, 8).bytes())
			r.must()
			r.end()
		}},
		{"the first agent loses a packet", RuleConservation, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 8).bytes())
			r.must()
			r.end()
		}},
		{"a proc does not read", RuleConservation, func(r *rig) {
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 8).bytes())
			r.must()
			r.end()
		}},
		{"a PROTOACK for a proc that has finished", "", func(r *rig) {
			r.carry(msg(0, 3, 1), msg(0, 3, 1))
			r.hop(ProcEnd(3), AgentEnd(1), ack(3, 0).bytes())
			r.hop(AgentEnd(1), AgentEnd(0), ack(3, 0).bytes())
		}},
		{"what a cut link loses", "", func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 8).bytes())
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 3, 8).bytes())
			r.hop(ProcEnd(1), AgentEnd(0), msg(1, 2, 8).bytes())
			r.note(r.c.Cut(r.id(AgentEnd(0), AgentEnd(1))))
		}},
		{"what another link loses", RuleConservation, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 1, 8).bytes())
			r.note(r.c.Cut(r.id(AgentEnd(0), AgentEnd(1))))
			r.must()
			r.end()
		}},
		{"what the link of a crashed proc loses", "", func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 1, 8).bytes())
			r.note(r.c.Crashed(ProcEnd(1)))
		}},
	})
}

// A job that ended by a fault may have lost anything, but what arrived must be right.
func TestUncleanEnd(t *testing.T) {
	r := newRig(t)
	r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 8).bytes())
	r.write(ProcEnd(1), AgentEnd(0), msg(0, 3, 8).bytes()[:50])
	r.note(r.c.Finish(false))
	wants(t, r.err, "")
}

func TestFirstViolationIsFinal(t *testing.T) {
	r := newRig(t)
	r.carry(pk{typ: 8, src: 0, dest: 3})
	wants(t, r.err, RuleFraming)
	id := r.id(ProcEnd(0), AgentEnd(0))
	for i, err := range []error{
		r.c.Sent(id, true, nil, 0), r.c.Received(id, true, 0, 0), r.c.Read(id, true, nil, 0), r.c.Ended(id, true), r.c.SawEnd(id, true),
		r.c.Cut(id), r.c.Crashed(ProcEnd(0)), r.c.Finished(0), r.c.Link(1, ProcEnd(0), ProcEnd(2)), r.c.Memory(0, 0, 0, 0, 0),
		r.c.Finish(true), r.c.Finish(false),
	} {
		if err != r.err {
			t.Errorf("call %d: %v, want %v", i, err, r.err)
		}
	}
}

// A link that may change its bytes, such as a resumable one, must deliver what was written.
func TestRead(t *testing.T) {
	a, b := msg(0, 2, 8).bytes(), syncAck(0, 2, 0, 0).bytes()
	stream := append(append([]byte{}, a...), msg(0, 2, 3).bytes()...)
	for _, test := range []struct {
		name string
		came []byte
		want Rule
	}{
		{"as it was", stream, ""},
		{"changed data", append(append([]byte{}, a[:HeaderSize+3]...), append([]byte{99}, stream[HeaderSize+4:]...)...), RuleConservation},
		{"a packet twice", append(append([]byte{}, a...), a[:len(stream)-len(a)]...), RuleConservation},
		{"too much", append(stream[:len(stream):len(stream)], b...), RuleWiring},
	} {
		for _, size := range []int{1, 7, 130, 1000} {
			t.Run(test.name, func(t *testing.T) {
				r := newRig(t)
				r.write(ProcEnd(0), ProcEnd(2), stream)
				id := r.id(ProcEnd(0), ProcEnd(2))
				for came := test.came; len(came) > 0; came = came[min(size, len(came)):] {
					r.note(r.c.Read(id, false, came[:min(size, len(came))], time.Second))
				}
				wants(t, r.err, test.want)
			})
		}
	}
}

func TestReadGreeting(t *testing.T) {
	for last, want := range map[byte]Rule{2: "", 3: RuleConservation} {
		r := bare(t)
		r.link(AgentEnd(2), AgentEnd(0))
		r.write(AgentEnd(2), AgentEnd(0), append([]byte{0, 0, 0, 2}, msg(4, 0, 2).bytes()...))
		r.note(r.c.Read(r.id(AgentEnd(2), AgentEnd(0)), false, []byte{0, 0, 0}, 0))
		r.note(r.c.Read(r.id(AgentEnd(2), AgentEnd(0)), false, append([]byte{last}, msg(4, 0, 2).bytes()...), 0))
		wants(t, r.err, want)
	}
}
