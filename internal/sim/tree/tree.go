// Package tree simulates the connections between the hosts of a site, which internal/cluster makes
// with sockets and clocks. The decisions are those of the product: core/membership decides which
// hosts are there and which are lost, internal/cluster/neighbour what hosts send each other and
// pass on.
package tree

import (
	"time"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/internal/sim/kernel"
)

const (
	pause = 50 * time.Millisecond // between two attempts to connect
	chunk = 64 << 10              // bytes that are moved at a time
)

// Owner receives the events of a Tree, which calls it from the kernel.
type Owner interface {
	// Joined is called when a host has its place in the tree, the head included. The owner then
	// submits the host's part.
	Joined(host int)
	// Asked is called at a host to which another host, or the host itself, has sent a question.
	// answer may be called later.
	Asked(host int, question []byte, answer func([]byte))
	// Gathered is called at the head with the parts of all hosts, by host.
	Gathered(parts [][]byte)
	// Started is called at the other hosts with the job that the head made of the parts.
	Started(host int, job []byte)
	// Finished is called at the head when all hosts have finished.
	Finished()
	// Fails is called at the head with another host's report of a failure.
	Fails(host int, report string)
	// JobEnded is called at the other hosts when the head has ended the job; report is empty if it
	// went well.
	JobEnded(host int, report string)
	// Lost is called when host at has lost host who, its parent or a child.
	Lost(at, who int, why error)
	// LostBelow is called when host at has lost hosts below it, a child and all below that, and the
	// site goes on without them, since SurviveLosses was called.
	LostBelow(at int, hosts []int, why error)
	// Missing is called at the head if hosts have not joined in time.
	Missing(hosts []int, why error)
	// Misplaced is called at a host to which another one was sent that does not belong below it.
	Misplaced(at, child int)
	// ParentNotFound is called at a host that has not found its parent in time.
	ParentNotFound(host int)
}

// Config is what a tree of hosts is like, and whom it reports to.
type Config struct {
	Kernel        *kernel.Kernel
	Shape         membership.Tree
	Beat, Silence time.Duration
	Limit         time.Duration // maximum time from New on until all hosts must have joined
	Late          time.Duration // maximum time from New on until a host starts
	Time          func() time.Time
	// Link creates the link over which a host connects to one above it. End 0 is the caller's.
	Link  func(from, to int) *kernel.Link
	Owner Owner
	// Thin is the number of bytes of messages for which one byte of a link stands; 0: 1. Without
	// it, handing a large job to many hosts would take all memory.
	Thin int
}

// Traffic counts what one host has sent and received in its tree. Bytes are those of messages with
// gRPC's header, without those of HTTP/2 and TCP.
type Traffic struct{ Sent, Received, BytesOut, BytesIn int }

// Tree is the hosts of one site.
type Tree struct {
	cfg   Config
	hosts []*host
	until time.Time
	buf   []byte
}

// New makes the hosts of a site. They connect when the kernel runs.
func New(cfg Config) (*Tree, error) {
	cfg.Thin = max(cfg.Thin, 1)
	t := &Tree{cfg: cfg, until: cfg.Time().Add(cfg.Limit), buf: make([]byte, chunk)}
	for i := range cfg.Shape.Hosts {
		m, err := membership.New(membership.Config{Tree: cfg.Shape, Self: i, Beat: cfg.Beat, Silence: cfg.Silence, Deadline: t.until}, cfg.Time())
		if err != nil {
			return nil, err
		}
		h := &host{t: t, self: i, member: m, below: make(map[int]*pipe), givenUp: make(map[int]bool), listens: make(map[int]string), questions: neighbour.Questions{Self: i}}
		t.hosts = append(t.hosts, h)
		h.timer = cfg.Kernel.After(cfg.Kernel.Between(0, cfg.Late), h.come)
	}
	return t, nil
}

// Traffic returns what a host has sent and received.
func (t *Tree) Traffic(host int) Traffic { return t.hosts[host].traffic }

// Start makes the head send the job to all hosts.
func (t *Tree) Start(job []byte) {
	t.hosts[0].tellBelow(&proto.Down{Word: &proto.Down_Job{Job: job}})
}

// Submit passes the part of a host to the tree, which sends it to the head before the job begins.
func (t *Tree) Submit(host int, part []byte) {
	t.hosts[host].with(func(m *membership.Member, now time.Time) { m.Submit(part, now) })
}

// Ask sends a question from one host to another, and calls answered with the answer, or with the
// reason why there is none within limit. answered is not called on a host that is gone.
func (t *Tree) Ask(host, to int, question []byte, limit time.Duration, answered func(answer []byte, err error)) {
	h := t.hosts[host]
	h.ask(to, question, limit, func(b []byte, err error) {
		if !h.gone {
			answered(b, err)
		}
	})
}

// Finish records that a host has finished its share of the job.
func (t *Tree) Finish(host int) {
	t.hosts[host].with(func(m *membership.Member, now time.Time) { m.Finish(now) })
}

// SurviveLosses has a host go on from now on without hosts below it that are lost.
func (t *Tree) SurviveLosses(host int) {
	t.hosts[host].with(func(m *membership.Member, _ time.Time) { m.SurviveLosses() })
}

// Fail reports a failure from a host to the head.
func (t *Tree) Fail(host int, report string) {
	m := &proto.Message{Host: int32(host), Data: []byte(report)}
	t.hosts[host].upward(&proto.Up{Word: &proto.Up_Fails{Fails: m}})
}

// End makes the head tell all hosts that the job is over. After that no host is lost or missing.
func (t *Tree) End(report string) {
	h := t.hosts[0]
	h.with(func(m *membership.Member, _ time.Time) { m.End() })
	h.tellBelow(&proto.Down{Word: &proto.Down_Over{Over: []byte(report)}})
}

// Leave ends a host once everything it had to send is sent to its parent.
func (t *Tree) Leave(host int) {
	h := t.hosts[host]
	if up := h.up; up != nil && !h.gone {
		up.leaving, h.up = true, nil
		up.flush()
	}
	h.leave((*pipe).close)
}

// Crash ends a host. Those connected to it see their connections end.
func (t *Tree) Crash(host int) { t.hosts[host].leave((*pipe).close) }

// Vanish ends a host without any sign to the others.
func (t *Tree) Vanish(host int) { t.hosts[host].leave((*pipe).hang) }
