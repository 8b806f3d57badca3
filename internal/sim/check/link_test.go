package check

import (
	"strings"
	"testing"
)

func TestWiring(t *testing.T) {
	whole := AgentEnd(2)
	for _, test := range []struct {
		name string
		run  func(r *rig) error
	}{
		{"a link twice", func(r *rig) error { return r.c.Link(100, ProcEnd(0), ProcEnd(2)) }},
		{"no such proc", func(r *rig) error { return r.c.Link(1, ProcEnd(5), AgentEnd(0)) }},
		{"no such host", func(r *rig) error { return r.c.Link(1, AgentEnd(-1), AgentEnd(0)) }},
		{"no such client", func(r *rig) error { return r.c.Link(1, ClientEnd(3), ServerEnd()) }},
		{"no such kind", func(r *rig) error { return r.c.Link(1, Endpoint{9, 0}, ServerEnd()) }},
		{"nothing to say", func(r *rig) error { return r.c.Link(1, ClientEnd(0), ProcEnd(0)) }},
		{"another's agent", func(r *rig) error { return r.c.Link(1, ProcEnd(0), AgentEnd(1)) }},
		{"a proc of a whole host", func(r *rig) error { return r.c.Link(1, ProcEnd(4), whole) }},
		{"two links to the agent", func(r *rig) error { return r.c.Link(1, AgentEnd(0), ProcEnd(0)) }},
		{"two channels", func(r *rig) error { return r.c.Link(1, AgentEnd(0), AgentEnd(1)) }},
		{"a channel to itself", func(r *rig) error { return r.c.Link(1, AgentEnd(0), AgentEnd(0)) }},
		{"a direct link to itself", func(r *rig) error { return r.c.Link(1, ProcEnd(0), ProcEnd(0)) }},
		{"a direct link to a foreign proc", func(r *rig) error { return r.c.Link(1, ProcEnd(0), ProcEnd(4)) }},
		{"two links to the server", func(r *rig) error {
			r.note(r.c.Link(1, ServerEnd(), ClientEnd(0)))
			return r.c.Link(2, ServerEnd(), ClientEnd(0))
		}},
		{"bytes on no link", func(r *rig) error { return r.c.Sent(1, true, nil, 0) }},
		{"bytes that were not written", func(r *rig) error { return r.c.Received(100, true, 1, 0) }},
		{"less than nothing", func(r *rig) error { return r.c.Received(100, true, -1, 0) }},
		{"an end before it came", func(r *rig) error { return r.c.SawEnd(100, true) }},
		{"no proc to finish", func(r *rig) error { return r.c.Finished(5) }},
		{"no host to ask", func(r *rig) error { return r.c.Memory(3, 0, 0, 0, 0) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			err := test.run(r)
			r.must()
			wants(t, err, RuleWiring)
		})
	}
	r := newRig(t)
	if err := r.c.Link(1, ProcEnd(2), ProcEnd(0)); err != nil {
		t.Errorf("a second direct link: %v", err)
	}
}

func TestNewRefusesImpossibleJobs(t *testing.T) {
	for name, change := range map[string]func(*Job){
		"no data":        func(j *Job) { j.Datalen = 0 },
		"no ackmark":     func(j *Job) { j.AckMark = 0 },
		"hiwater":        func(j *Job) { j.HiWater = j.AckMark - 1 },
		"a host's proc":  func(j *Job) { j.Procs[0].Host = 3 },
		"a client":       func(j *Job) { j.Hosts[0].Client = maxClients },
		"a client below": func(j *Job) { j.Hosts[0].Client = -1 },
		"an identity":    func(j *Job) { j.Procs[0].Identity = j.Procs[1].Identity },
	} {
		job := testJob()
		change(&job)
		if _, err := New(job); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestViolationSaysWhere(t *testing.T) {
	r := newRig(t)
	r.carry(msg(0, 3, 2), msg(0, 3, 5))
	r.write(ProcEnd(0), AgentEnd(0), pk{typ: 2, src: 0, dest: 1}.bytes())
	const want = "check: ack: link 100, proc 0 -> agent 0, byte 263, at 1ms: 0->1 PROTOACK: it is PROTOACK 1 for 0 packets that were read, and ackmark is 2"
	if r.err == nil || r.err.Error() != want {
		t.Errorf("got  %v\nwant %s", r.err, want)
	}
	r = newRig(t)
	r.carry(sync(0, 3, 7, 2))
	r.end()
	const inTheEnd = "check: sync: at 1ms: message of proc 0 to proc 3, srqid=7, has no SYNCACK"
	if r.err == nil || r.err.Error() != inTheEnd {
		t.Errorf("got  %v\nwant %s", r.err, inTheEnd)
	}
}

func TestLine(t *testing.T) {
	c := newChecker(t, testJob())
	for _, test := range []struct {
		p    pk
		want string
	}{
		{pk{typ: 0, src: 0, dest: 3, len: 3, srqid: 4, drqid: 5, msglen: 9, lsrank: 1, tag: -2, cid: 6}, "DATA len=3 srqid=4 drqid=5 msglen=9 lsrank=1 tag=-2 cid=6"},
		{sync(0, 3, 4, 3), "DATASYNC len=3 srqid=4 msglen=3 lsrank=0 tag=5 cid=0"},
		{ack(0, 3), "PROTOACK"},
		{syncAck(0, 3, 1, 2), "SYNCACK srqid=1 drqid=2"},
		{cancel(0, 3, 1), "CANCEL srqid=1"},
		{yes(0, 3, 1), "CANCELYES srqid=1"},
		{no(0, 3, 1), "CANCELNO srqid=1"},
		{pk{typ: 99, src: 0, dest: 3}, "TYPE(99)"},
	} {
		b := test.p.bytes()
		if got := c.Line(b); got != "0->3 "+test.want {
			t.Errorf("got %q, want 0->3 and %q", got, test.want)
		}
		if got, want := Line(b), "::7f00:1/1000->::7f00:1/1003 "+test.want; strings.ReplaceAll(got, "127.0.0.1", "7f00:1") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	fini := pk{typ: 7}.bytes()
	if got := c.Line(fini); got != "FINI" {
		t.Errorf("got %q", got)
	}
	if got := c.Line(fini[:50]); got != "50 bytes of a packet's header" {
		t.Errorf("got %q", got)
	}
	stranger := msg(0, 9, 0).bytes()
	if got := c.Line(stranger); !strings.Contains(got, "/1009 DATA") {
		t.Errorf("got %q", got)
	}
}
