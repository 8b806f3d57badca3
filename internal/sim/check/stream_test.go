package check

import "testing"

func TestFraming(t *testing.T) {
	runScripts(t, []script{
		{"data of any length up to the data length", "", func(r *rig) {
			for n := range testDatalen + 1 {
				r.carry(msg(n%2, 2+n%2, n))
				if n%4 > 1 {
					r.carry(ack(2+n%2, n%2))
				}
			}
		}},
		{"more data than the data length", RuleFraming, func(r *rig) {
			r.carry(msg(0, 3, testDatalen+1))
		}},
		{"an unknown type", RuleFraming, func(r *rig) {
			r.carry(pk{typ: 8, src: 0, dest: 3})
		}},
		{"an unknown type of a foreign host", RuleFraming, func(r *rig) {
			r.carry(pk{typ: 1 << 31, src: 4, dest: 3})
		}},
		{"a foreign host's pk_len without data", "", func(r *rig) {
			p := syncAck(4, 0, 9, 0)
			p.len, p.msglen, p.lsrank, p.tag = 128, 128, -1, -1
			r.carry(sync(0, 4, 9, 3), p, msg(4, 0, 3), ack(0, 4))
		}},
		{"an end in data", RuleFraming, func(r *rig) {
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 5).bytes()[:HeaderSize+2])
			r.must()
			r.end()
		}},
		{"an end in a header", RuleFraming, func(r *rig) {
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 5).bytes()[:7])
			r.must()
			r.end()
		}},
		{"an end in data on a link that was cut", "", func(r *rig) {
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 5).bytes()[:HeaderSize+2])
			r.note(r.c.Cut(r.id(ProcEnd(0), ProcEnd(2))))
		}},
		{"bytes after the end", RuleFraming, func(r *rig) {
			r.note(r.c.Ended(r.id(ProcEnd(0), ProcEnd(2)), true))
			r.must()
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 2, 5).bytes())
		}},
	})
}

func TestAddress(t *testing.T) {
	runScripts(t, []script{
		{"an unknown source", RuleAddress, func(r *rig) {
			r.write(ProcEnd(0), AgentEnd(0), pk{src: 9, dest: 3}.bytes())
		}},
		{"an unknown destination", RuleAddress, func(r *rig) {
			r.write(ProcEnd(0), AgentEnd(0), pk{src: 0, dest: 9}.bytes())
		}},
		{"to itself", RuleAddress, func(r *rig) {
			r.write(ProcEnd(0), AgentEnd(0), pk{src: 0, dest: 0}.bytes())
		}},
		{"a proc in another's name", RuleAddress, func(r *rig) {
			r.write(ProcEnd(0), AgentEnd(0), pk{src: 1, dest: 3}.bytes())
		}},
		{"a host in the name of a proc of another", RuleAddress, func(r *rig) {
			r.write(AgentEnd(0), AgentEnd(1), pk{src: 4, dest: 3}.bytes())
		}},
		{"by the channel to another host", RuleAddress, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 4, 1).bytes())
			r.must()
			r.write(AgentEnd(0), AgentEnd(1), msg(0, 4, 1).bytes())
		}},
		{"to another proc of the host", RuleAddress, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 1).bytes())
			r.hop(AgentEnd(0), AgentEnd(1), msg(0, 3, 1).bytes())
			r.must()
			r.write(AgentEnd(1), ProcEnd(2), msg(0, 3, 1).bytes())
		}},
		{"back to its source", RuleAddress, func(r *rig) {
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 1).bytes())
			r.must()
			r.write(AgentEnd(0), ProcEnd(0), msg(0, 3, 1).bytes())
		}},
		{"a third proc's packet on a direct link", RuleAddress, func(r *rig) {
			r.write(ProcEnd(0), ProcEnd(2), msg(0, 3, 1).bytes())
		}},
	})
}

func TestDance(t *testing.T) {
	for _, test := range []struct {
		greeting []byte
		want     Rule
	}{
		{[]byte{0, 0, 0, 2}, ""},
		{[]byte{0, 0, 0, 1}, RuleDance},
		{[]byte{2, 0, 0, 0}, RuleDance},
	} {
		r := bare(t)
		r.link(AgentEnd(1), AgentEnd(2))
		r.hop(AgentEnd(2), AgentEnd(1), test.greeting)
		wants(t, r.err, test.want)
	}
}

func TestFields(t *testing.T) {
	with := func(p pk, change func(*pk)) pk {
		change(&p)
		return p
	}
	long := sync(0, 3, 1, 20)
	ready := func(r *rig) { r.carry(long, syncAck(3, 0, 1, 77)) }
	for name, p := range map[string]pk{
		"pk_reserved":             with(msg(0, 3, 1), func(p *pk) { p.reserved = 1 }),
		"a negative tag":          with(msg(0, 3, 1), func(p *pk) { p.tag = -1 }),
		"a negative rank":         with(msg(0, 3, 1), func(p *pk) { p.lsrank = -1 }),
		"pk_drqid of a short one": with(msg(0, 3, 1), func(p *pk) { p.drqid = 1 }),
		"pk_drqid of a first one": with(sync(0, 3, 2, 20), func(p *pk) { p.drqid = 1 }),
		"a first one not full":    with(sync(0, 3, 2, 20), func(p *pk) { p.len-- }),
		"a middle one not full":   more(long, 77, testDatalen-1),
		"PROTOACK with srqid":     reply(2, 0, 3, 1, 0),
		"PROTOACK with drqid":     reply(2, 0, 3, 0, 1),
		"CANCEL with drqid":       reply(4, 0, 3, 1, 1),
		"SYNCACK with pk_len":     with(syncAck(0, 3, 1, 1), func(p *pk) { p.len = 128 }),
		"SYNCACK with pk_msglen":  with(syncAck(0, 3, 1, 1), func(p *pk) { p.msglen = 1 }),
		"SYNCACK with a context":  with(syncAck(0, 3, 1, 1), func(p *pk) { p.cid = 73 }),
	} {
		runScripts(t, []script{{name, RuleFields, func(r *rig) {
			ready(r)
			r.must()
			r.carry(p)
		}}})
	}
	runScripts(t, []script{
		{"FINI with a length", RuleFields, func(r *rig) {
			for rank := range 2 {
				r.ended(rank)
			}
			r.write(AgentEnd(0), AgentEnd(1), pk{typ: 7, len: 128}.bytes())
		}},
		{"foreign procs may", "", func(r *rig) {
			first := with(sync(4, 0, 2, 20), func(p *pk) { p.len -= 5; p.reserved = 1 })
			r.carry(first, syncAck(0, 4, 2, 6), more(first, 6, 1), ack(0, 4), more(first, 6, 8), more(first, 6, 8), ack(0, 4))
		}},
	})
}
