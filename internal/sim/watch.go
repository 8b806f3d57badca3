package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/check"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

type watch struct {
	k       *kernel.Kernel
	c       *Case
	want    check.Job
	checker *check.Checker
	links   map[*kernel.Link]int // numbers of links for the checker
	err     error                // an error found here, not by the checker
	cover   Coverage
}

func newWatch(k *kernel.Kernel, c *Case, cover Coverage, trace bool) (*watch, error) {
	want := c.wanted()
	checker, err := check.New(want)
	if err == nil && trace {
		checker.Trace(func(from, to check.Endpoint, packet string) { k.Tracef("%v -> %v: %s", from, to, packet) })
	}
	return &watch{k: k, c: c, want: want, checker: checker, links: make(map[*kernel.Link]int), cover: cover}, err
}

// wanted derives from the case alone how the job must look.
func (c *Case) wanted() check.Job {
	p := c.params()
	j := check.Job{Datalen: p.DataLen, AckMark: p.AckMark, HiWater: p.HiWater, PlainReceives: true}
	for i := range c.Program.Messages {
		by := c.Program.Messages[i].By
		j.PlainReceives = j.PlainReceives && by != script.ByMprobe && by != script.ByImprobe
	}
	for i, s := range c.Sites {
		first := len(j.Procs)
		for h, procs := range s.Hosts {
			host := len(j.Hosts)
			j.Hosts = append(j.Hosts, check.Host{Client: i, Own: s.Foreign == nil, Foreign: s.Foreign != nil})
			for range procs {
				j.Procs = append(j.Procs, check.Proc{Identity: identity(i, h, len(j.Procs)-first), Host: host})
			}
		}
	}
	return j
}

// Begin compares the result of startup with the case.
func (w *watch) Begin(j *startup.Job) {
	want := &w.want
	switch {
	case j.Procs.Len() != len(want.Procs) || len(j.Hosts) != len(want.Hosts) || len(j.Clients) != len(w.c.Sites):
		w.fail("startup has settled on %d procs on %d hosts of %d clients", j.Procs.Len(), len(j.Hosts), len(j.Clients))
	case j.TagUB != w.c.params().TagUB:
		w.fail("startup has settled on greatest tag %d, not %d", j.TagUB, w.c.params().TagUB)
	case j.DataLen != want.Datalen || j.AckMark != want.AckMark || j.HiWater != want.HiWater:
		w.fail("startup has settled on datalen %d, ackmark %d, hiwater %d, not %d, %d, %d", j.DataLen, j.AckMark, j.HiWater, want.Datalen, want.AckMark, want.HiWater)
	}
	for r, p := range j.Procs.All() {
		if w.err == nil && (int(p.Host) != want.Procs[r].Host || identityOf(p.ID) != want.Procs[r].Identity) {
			w.fail("rank %d is %v on host %d, not on host %d", r, p.ID, p.Host, want.Procs[r].Host)
		}
	}
}

// identity returns the identity of a proc, by its number in its site: package job numbers addresses
// and processes so.
func identity(client, host, proc int) [check.IdentitySize]byte {
	id := wire.Proc{PID: int64(101 + proc)}
	copy(id.Host[12:], []byte{10, byte(client), byte(host), 1})
	return identityOf(id)
}

func identityOf(p wire.Proc) (id [check.IdentitySize]byte) {
	copy(id[:], p.Host[:])
	binary.BigEndian.PutUint64(id[len(p.Host):], uint64(p.PID))
	return id
}

func (w *watch) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("startup: "+format, args...)
	}
}

var kinds = map[job.EndpointKind]check.Kind{
	job.AtProc: check.KindProc, job.AtAgent: check.KindAgent, job.AtClient: check.KindClient, job.AtServer: check.KindServer,
}

func endpoint(e job.Endpoint) check.Endpoint {
	return check.Endpoint{Kind: kinds[e.Kind], Number: e.Number}
}

// Link announces a link to the checker.
func (w *watch) Link(l *kernel.Link, ends [2]job.Endpoint) kernel.Watcher {
	id := len(w.links)
	w.links[l] = id
	_ = w.checker.Link(id, endpoint(ends[0]), endpoint(ends[1])) // Fault returns this error
	if l.Ends[0].Boxed() != nil {
		w.checker.Boxed(id)
	}
	w.cover.link(ends)
	return &linkWatch{w: w, l: l, id: id}
}

// Cut tells the checker that a link was cut.
func (w *watch) Cut(l *kernel.Link) { _ = w.checker.Cut(w.links[l]) }

// Crashed tells the checker that an endpoint has died.
func (w *watch) Crashed(e job.Endpoint) { _ = w.checker.Crashed(endpoint(e)) }

// Fault returns the first error that was found.
func (w *watch) Fault() error {
	if w.err != nil {
		return w.err
	}
	return w.checker.Finish(false)
}

// Agent passes what an agent reports about its memory to the checker.
func (w *watch) Agent(host int, s agent.Counts) {
	_ = w.checker.Memory(host, int64(s.Queued-s.Ends), int64(s.Memory), int64(w.c.chunk()), w.k.Now())
}

type linkWatch struct {
	w  *watch
	l  *kernel.Link
	id int
}

func (x *linkWatch) first(e *kernel.End) bool { return x.l.Ends[0] == e }

func (x *linkWatch) Sent(from *kernel.End, data []byte) {
	_ = x.w.checker.Sent(x.id, x.first(from), data, x.w.k.Now())
}

func (x *linkWatch) Received(to *kernel.End, n int) {
	_ = x.w.checker.Received(x.id, x.first(to), n, x.w.k.Now())
}

// Read is called instead of Received where a link is resumed.
func (x *linkWatch) Read(to *kernel.End, data []byte) {
	_ = x.w.checker.Read(x.id, x.first(to), data, x.w.k.Now())
}

func (x *linkWatch) Ended(from *kernel.End) { _ = x.w.checker.Ended(x.id, x.first(from)) }

func (x *linkWatch) SawEnd(by *kernel.End) { _ = x.w.checker.SawEnd(x.id, x.first(by)) }
