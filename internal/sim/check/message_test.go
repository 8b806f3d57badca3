package check

import "testing"

func TestLongMessage(t *testing.T) {
	first := sync(0, 3, 1, 20)
	begun := func(r *rig) {
		r.carry(first, syncAck(3, 0, 1, 77))
		r.must()
	}
	with := func(p pk, change func(*pk)) pk {
		change(&p)
		return p
	}
	wrong := func(name string, p pk) script {
		return script{name, RuleMessage, func(r *rig) { begun(r); r.carry(p) }}
	}
	runScripts(t, []script{
		{"first packet, SYNCACK, the rest", "", func(r *rig) {
			r.carry(first, syncAck(3, 0, 1, 77), more(first, 77, 8), ack(3, 0), more(first, 77, 4))
		}},
		{"two of a pair, mixed with others", "", func(r *rig) {
			second := sync(0, 3, 2, 16)
			r.carry(first, second, ack(3, 0), syncAck(3, 0, 2, 5), syncAck(3, 0, 1, 6), ack(0, 3))
			r.carry(more(first, 6, 8), more(second, 5, 8), ack(3, 0), msg(0, 3, 3), more(first, 6, 4), ack(3, 0))
		}},
		{"a request id can be used again", "", func(r *rig) {
			r.carry(sync(0, 3, 1, 2), syncAck(3, 0, 1, 0), sync(0, 3, 1, 2), ack(3, 0), syncAck(3, 0, 1, 0), ack(0, 3))
		}},
		{"a request id of a message that is not over", RuleMessage, func(r *rig) {
			begun(r)
			r.carry(sync(0, 1, 1, 2))
		}},
		{"on without SYNCACK", RuleMessage, func(r *rig) {
			r.carry(first)
			r.must()
			r.carry(more(first, 77, 8))
		}},
		{"on before SYNCACK was read", RuleMessage, func(r *rig) {
			r.carry(first)
			r.hop(ProcEnd(3), AgentEnd(1), syncAck(3, 0, 1, 77).bytes())
			r.must()
			r.carry(more(first, 77, 8))
		}},
		{"on beyond the end", RuleMessage, func(r *rig) {
			begun(r)
			r.carry(more(first, 77, 8), ack(3, 0), more(first, 77, 4))
			r.must()
			r.carry(more(first, 77, 4))
		}},
		wrong("no such message", more(sync(0, 3, 2, 20), 77, 8)),
		wrong("not to this proc", more(sync(0, 1, 1, 20), 77, 8)),
		wrong("another pk_drqid", more(first, 78, 8)),
		wrong("another pk_msglen", with(more(first, 77, 8), func(p *pk) { p.msglen++ })),
		wrong("another pk_tag", with(more(first, 77, 8), func(p *pk) { p.tag++ })),
		wrong("another pk_cid", with(more(first, 77, 8), func(p *pk) { p.cid++ })),
		wrong("another pk_lsrank", with(more(first, 77, 8), func(p *pk) { p.lsrank++ })),
		wrong("more data than message", with(msg(0, 3, 4), func(p *pk) { p.msglen = 3 })),
		{"more than what is left", RuleMessage, func(r *rig) {
			begun(r)
			r.carry(more(first, 77, 8))
			r.must()
			r.carry(more(first, 77, 8))
		}},
		{"not to its end", RuleMessage, func(r *rig) {
			begun(r)
			r.carry(more(first, 77, 8), ack(3, 0))
			r.must()
			r.end()
		}},
	})
}

func TestSync(t *testing.T) {
	runScripts(t, []script{
		{"the SYNCACK may come before the data has been read", "", func(r *rig) {
			w := way(0, 3)
			b := sync(0, 3, 1, 8).bytes()
			r.hop(w[0], w[1], b)
			r.hop(w[1], w[2], b)
			r.write(w[2], w[3], b)
			r.readSome(w[2], w[3], HeaderSize)
			r.carry(syncAck(3, 0, 1, 0))
			r.read(w[2], w[3])
		}},
		{"but not before its header", RuleSync, func(r *rig) {
			w := way(0, 3)
			b := sync(0, 3, 1, 8).bytes()
			r.hop(w[0], w[1], b)
			r.hop(w[1], w[2], b)
			r.write(w[2], w[3], b)
			r.readSome(w[2], w[3], HeaderSize-1)
			r.must()
			r.carry(syncAck(3, 0, 1, 0))
		}},
		{"unasked", RuleSync, func(r *rig) {
			r.carry(msg(0, 3, 1))
			r.must()
			r.carry(syncAck(3, 0, 0, 0))
		}},
		{"of another proc's message", RuleSync, func(r *rig) {
			r.carry(sync(0, 3, 1, 8))
			r.must()
			r.carry(syncAck(1, 0, 1, 0))
		}},
		{"twice", RuleSync, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), syncAck(3, 0, 1, 0))
			r.must()
			r.carry(syncAck(3, 0, 1, 0))
		}},
		{"never", RuleSync, func(r *rig) {
			r.carry(sync(0, 3, 1, 8))
			r.must()
			r.end()
		}},
		{"never, to a proc whose link was cut", "", func(r *rig) {
			r.carry(sync(0, 3, 1, 8))
			r.note(r.c.Crashed(ProcEnd(3)))
		}},
	})
}

func TestCancel(t *testing.T) {
	runScripts(t, []script{
		{"yes", "", func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1), ack(3, 0), yes(3, 0, 1))
		}},
		{"no, then SYNCACK", "", func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1), ack(3, 0), no(3, 0, 1), syncAck(3, 0, 1, 0), ack(0, 3))
		}},
		{"no, after SYNCACK", "", func(r *rig) {
			first := sync(0, 3, 1, 16)
			r.carry(first, cancel(0, 3, 1), ack(3, 0), syncAck(3, 0, 1, 9), more(first, 9, 8), no(3, 0, 1), ack(0, 3))
		}},
		{"late, when the message is over", "", func(r *rig) {
			r.carry(sync(0, 3, 1, 8), syncAck(3, 0, 1, 0), cancel(0, 3, 1), ack(3, 0), no(3, 0, 1), ack(0, 3))
		}},
		{"a message without acknowledgement", RuleCancel, func(r *rig) {
			r.carry(msg(0, 3, 1))
			r.must()
			r.carry(cancel(0, 3, 0))
		}},
		{"twice", RuleCancel, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1))
			r.must()
			r.carry(cancel(0, 3, 1))
		}},
		{"the request id again before the answer", RuleMessage, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1), syncAck(3, 0, 1, 0))
			r.must()
			r.carry(sync(0, 3, 1, 8))
		}},
		{"an answer unasked", RuleCancel, func(r *rig) {
			r.carry(sync(0, 3, 1, 8))
			r.must()
			r.carry(no(3, 0, 1))
		}},
		{"an answer before the CANCEL was read", RuleCancel, func(r *rig) {
			r.carry(sync(0, 3, 1, 8))
			r.hop(ProcEnd(0), AgentEnd(0), cancel(0, 3, 1).bytes())
			r.must()
			r.carry(no(3, 0, 1))
		}},
		{"two answers", RuleCancel, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1), no(3, 0, 1))
			r.must()
			r.carry(no(3, 0, 1))
		}},
		{"yes after SYNCACK", RuleCancel, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1), syncAck(3, 0, 1, 0))
			r.must()
			r.carry(yes(3, 0, 1))
		}},
		{"SYNCACK after yes", RuleCancel, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1), yes(3, 0, 1))
			r.must()
			r.carry(syncAck(3, 0, 1, 0))
		}},
		{"on after yes", RuleCancel, func(r *rig) {
			first := sync(0, 3, 1, 16)
			r.carry(first, cancel(0, 3, 1))
			r.hop(ProcEnd(3), AgentEnd(1), yes(3, 0, 1).bytes())
			r.must()
			r.carry(more(first, 0, 8))
		}},
		{"no answer", RuleCancel, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), syncAck(3, 0, 1, 0), cancel(0, 3, 1), ack(3, 0))
			r.must()
			r.end()
		}},
		{"no, and no SYNCACK", RuleSync, func(r *rig) {
			r.carry(sync(0, 3, 1, 8), cancel(0, 3, 1), ack(3, 0), no(3, 0, 1))
			r.must()
			r.end()
		}},
	})
}

// Without matched probes a message that cannot be cancelled has been received.
func TestCancelRefusedForNothing(t *testing.T) {
	for _, test := range []struct {
		src          int
		plain, acked bool
		want         Rule
	}{{3, true, false, RuleCancel}, {3, false, false, ""}, {3, true, true, ""}, {4, true, false, ""}} {
		r := newRig(t)
		r.c.job.PlainReceives = test.plain
		r.carry(sync(0, test.src, 1, 8), cancel(0, test.src, 1))
		if test.acked {
			r.carry(syncAck(test.src, 0, 1, 0))
		}
		r.must()
		r.carry(no(test.src, 0, 1))
		wants(t, r.err, test.want)
	}
}

// Requests that are over are forgotten in the end.
func TestEndedRequestsAreForgotten(t *testing.T) {
	r := newRig(t)
	for i := range uint64(2 * maxEnded) {
		r.carry(sync(0, 1, i, 0), syncAck(1, 0, i, 0))
		if i%2 == 1 {
			r.carry(ack(1, 0), ack(0, 1))
		}
	}
	r.must()
	if n := len(r.c.procs[0].requests); n != maxEnded {
		t.Errorf("%d requests are remembered, want %d", n, maxEnded)
	}
	r.end()
	wants(t, r.err, "")
}
