package play

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Tags of commands to the IUT's program and of its replies, on MPI_COMM_WORLD. Cases
// must not have a receive with wildcards for source and tag pending while they send
// commands to the same proc.
const (
	tagCommand = 32001
	tagReply   = 32002
)

// control gives commands to the interpreter that the IUT's procs run. They are
// ordinary IMPI messages of the last proc of the tester's first client, in a single
// packet or several as the job's data length has it.
type control struct {
	j    *job
	self *proc

	mu      sync.Mutex
	waiting map[procID][]*call // by proc of the IUT, oldest first
	long    map[uint64]*reply  // replies in several packets, by drqid
	acks    map[uint64]chan packet
	probes  map[uint64]*question // unanswered probes, by srqid
	refused string               // the last command that was answered with an error, and the answer
	last    uint64               // request ID
}

// Request IDs of commands and their replies; scripts choose smaller ones.
const (
	controlRequests = 1 << 40
	controlReplies  = 1 << 41
	controlProbes   = 1 << 42
)

// reply is one that has not arrived completely.
type reply struct {
	from procID
	want uint64
	data []byte
}

type call struct {
	j    *job
	to   *proc
	text string
	done chan struct{}
	out  string // after done
	err  error
}

func newControl(j *job) *control {
	c := &control{j: j, waiting: map[procID][]*call{}, long: map[uint64]*reply{}, acks: map[uint64]chan packet{}, probes: map[uint64]*question{}, last: controlRequests}
	for _, x := range j.clients {
		if !x.iut {
			h := x.hosts[0]
			c.self = h.procs[len(h.procs)-1]
			break
		}
	}
	return c
}

// broken fails all commands to the procs behind a channel.
func (c *control) broken(ch *channel, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ch.remote.procs {
		for _, x := range c.waiting[p.id] {
			x.err = fmt.Errorf("the channel ended: %s", ending(err))
			close(x.done)
		}
		delete(c.waiting, p.id)
	}
}

// start sends a command to a proc of the IUT and does not wait for its reply.
func (j *job) start(to *proc, format string, args ...any) *call {
	c := j.control
	x := &call{j: j, to: to, text: fmt.Sprintf(format, args...), done: make(chan struct{})}
	c.mu.Lock()
	c.waiting[to.id] = append(c.waiting[to.id], x)
	c.mu.Unlock()
	j.t.trace.add("-- rank %d is told: %s", to.rank, x.text)
	c.send(to, []byte(x.text))
	return x
}

// do sends a command and waits for its reply, which must not be an error.
func (j *job) do(to *proc, format string, args ...any) answers {
	return j.start(to, format, args...).ok()
}

// quiet lets each proc of the IUT say that it has done all commands, and then looks
// whether a packet has come that the script has not taken. Channels keep their order,
// so nothing that a command made the proc send can still be on its way.
func (j *job) quiet(why string) {
	for _, p := range j.self.procs() {
		j.do(p, "ping")
	}
	for _, ch := range j.channels {
		ch.empty(why)
	}
}

func (c *client) procs() (all []*proc) {
	for _, h := range c.hosts {
		all = append(all, h.procs...)
	}
	return all
}

// answers is what a reply says: "ok name=value ...".
type answers struct {
	t      *T
	text   string
	values map[string]string
}

func (x *call) ok() answers {
	out, err := x.wait()
	if err != nil {
		x.j.t.Fatalf("the program on rank %d: %q: %v", x.to.rank, x.text, err)
	}
	return out
}

// wait waits for the reply. The error is what the IUT's MPI said, or that no reply
// came.
func (x *call) wait() (answers, error) {
	if !closes(x.done, x.j.t.patience) {
		x.j.t.Fatalf("the program on rank %d has not finished %q within %v", x.to.rank, x.text, x.j.t.patience)
	}
	if x.err != nil {
		x.j.t.Fatalf("the program on rank %d: %q: %v", x.to.rank, x.text, x.err)
	}
	word, rest, _ := strings.Cut(x.out, " ")
	if word != "ok" {
		return answers{}, fmt.Errorf("%s", x.out)
	}
	a := answers{x.j.t, x.out, map[string]string{}}
	for _, f := range strings.Fields(rest) {
		name, value, _ := strings.Cut(f, "=")
		a.values[name] = value
	}
	return a, nil
}

// pending reports whether the command has not ended. Whether it never will is shown by quiet and
// the order of packets.
func (x *call) pending() bool { return !isClosed(x.done) }

func (a answers) is(name string, want any) {
	if got := a.values[name]; got != fmt.Sprint(want) {
		a.t.Fatalf("the program's %s is %s, not %v, in %q", name, got, want, a.text)
	}
}

func (c *control) send(to *proc, text []byte) {
	j := c.j
	ch := j.between(c.self.host, to.host)
	p := packet{
		src: c.self.id, dest: to.id, msglen: uint64(len(text)), lsrank: int32(c.self.rank), tag: tagCommand,
		cid: worldCID, count: int64(len(text)),
	}
	if len(text) <= int(j.datalen) {
		c.piece(ch, p, text)
		return
	}
	c.mu.Lock()
	c.last++
	p.srqid = c.last
	ack := make(chan packet, 1)
	c.acks[p.srqid] = ack
	c.mu.Unlock()
	first := p
	first.typ = pkDataSync
	c.piece(ch, first, text[:j.datalen])
	select {
	case a := <-ack:
		p.drqid = a.drqid
	case <-time.After(j.t.patience):
		j.t.Fatalf("%s: no SYNCACK for a command to rank %d within %v", ch.c.name, to.rank, j.t.patience)
	}
	for rest := text[j.datalen:]; len(rest) > 0; {
		n := min(len(rest), int(j.datalen))
		c.piece(ch, p, rest[:n])
		rest = rest[n:]
	}
}

// because returns a hint for the text of a timeout: what the program under test has refused to do,
// or nothing.
func (c *control) because() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == "" {
		return ""
	}
	return "; " + c.refused
}

// piece sends one packet of a command when the window lets it.
func (c *control) piece(ch *channel, p packet, data []byte) {
	if !ch.open(p.src, p.dest) {
		ch.shut(&p, "the window for commands stays closed")
	}
	p.data, p.len = data, uint32(len(data))
	ch.send(p)
}

// take reports whether the packet belongs to a command or a reply, and uses it then. It
// is called by the channel's reader.
func (c *control) take(ch *channel, p packet) bool {
	if c.self == nil || p.dest != c.self.id {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.typ == pkSyncAck && c.acks[p.srqid] != nil:
		c.acks[p.srqid] <- p
		delete(c.acks, p.srqid)
	case p.typ.hasData() && p.drqid >= controlReplies && c.long[p.drqid] != nil:
		r := c.long[p.drqid]
		c.append(p.drqid, r, p.data)
	case p.typ.hasData() && p.tag == tagReply && p.cid == worldCID:
		c.first(ch, p)
	default:
		return false
	}
	return true
}

func (c *control) first(ch *channel, p packet) {
	c.last++
	handle := controlReplies + c.last
	r := &reply{from: p.src, want: p.msglen}
	c.long[handle] = r
	if p.typ == pkDataSync {
		_ = ch.write(&packet{typ: pkSyncAck, src: p.dest, dest: p.src, srqid: p.srqid, drqid: handle}) // a broken channel is noticed by its reader
	}
	c.append(handle, r, p.data)
}

func (c *control) append(handle uint64, r *reply, data []byte) {
	r.data = append(r.data, data...)
	if uint64(len(r.data)) < r.want {
		return
	}
	delete(c.long, handle)
	c.j.t.trace.add("-- it replies: %s", r.data)
	if w := c.waiting[r.from]; len(w) > 0 {
		w[0].out = string(r.data)
		if !strings.HasPrefix(w[0].out, "ok") {
			c.refused = fmt.Sprintf("rank %d answered %q with %q", w[0].to.rank, w[0].text, w[0].out)
		}
		close(w[0].done)
		c.waiting[r.from] = w[1:]
	}
}
