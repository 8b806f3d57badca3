// Package tree simulates how the hosts of a site are connected: what internal/cluster does with
// sockets and clocks. Who is there and who is lost is decided by core/membership, and what hosts say
// to each other, and pass on, by internal/cluster/neighbour, both as they ship.
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

// Owner is told what happens. A Tree calls it from the kernel.
type Owner interface {
	// Joined is called when a host has its place, the head included: it is to submit its part.
	Joined(host int)
	// Asked is called at a host that another one, or it itself, asks something. answer may be called
	// later.
	Asked(host int, question []byte, answer func([]byte))
	// Gathered is called at the head with what all hosts have, by host.
	Gathered(parts [][]byte)
	// Started is called at the other hosts with what the head has made of that.
	Started(host int, job []byte)
	// Finished is called at the head when all hosts have finished.
	Finished()
	// Fails is called at the head with another host's report of a failure.
	Fails(host int, report string)
	// Over is called at the other hosts when the head has ended the job; report is empty if it went
	// well.
	Over(host int, report string)
	// Lost says that host at has lost host who, its parent or a child.
	Lost(at, who int, why error)
	// Missing says at the head that hosts have not come in time.
	Missing(hosts []int, why error)
	// Alone is called at a host that has not found its parent in time.
	Alone(host int)
}

// Config describes a tree.
type Config struct {
	Kernel        *kernel.Kernel
	Shape         membership.Tree
	Beat, Silence time.Duration
	Limit         time.Duration // until all hosts must be there, from New on
	Late          time.Duration // by which a host may come later than New
	Time          func() time.Time
	// Link makes the link by which a host connects to one above it. End 0 is the caller's.
	Link  func(from, to int) *kernel.Link
	Owner Owner
	// Thin is how many bytes of messages one byte of a link stands for; 0: 1. Many hosts that are
	// handed a large job would else take all memory.
	Thin int
}

// Traffic counts what one host has sent and received in its tree. Bytes are those of messages with
// the header that gRPC gives them, without those of HTTP/2 and TCP.
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
		m, err := membership.New(membership.Config{Tree: cfg.Shape, Self: i, Beat: cfg.Beat, Silence: cfg.Silence, Until: t.until}, cfg.Time())
		if err != nil {
			return nil, err
		}
		h := &host{t: t, self: i, member: m, below: make(map[int]*pipe), givenUp: make(map[int]bool), listens: make(map[int]string), questions: neighbour.Questions{Self: i}}
		t.hosts = append(t.hosts, h)
		h.timer = cfg.Kernel.After(cfg.Kernel.Between(0, cfg.Late), h.come)
	}
	return t, nil
}

// Traffic tells what a host has sent and received.
func (t *Tree) Traffic(host int) Traffic { return t.hosts[host].traffic }

// Start has the head hand out the job.
func (t *Tree) Start(job []byte) {
	t.hosts[0].tellBelow(&proto.Down{Word: &proto.Down_Job{Job: job}})
}

// Submit is what a host tells the whole site before the job begins.
func (t *Tree) Submit(host int, part []byte) {
	t.hosts[host].with(func(m *membership.Member, now time.Time) { m.Submit(part, now) })
}

// Ask has a host ask another one, and calls answered with the answer, or with why there is none within
// limit. A host that is gone hears nothing.
func (t *Tree) Ask(host, to int, question []byte, limit time.Duration, answered func(answer []byte, err error)) {
	h := t.hosts[host]
	h.ask(to, question, limit, func(b []byte, err error) {
		if !h.gone {
			answered(b, err)
		}
	})
}

// Finish says that a host has finished its share of the job.
func (t *Tree) Finish(host int) {
	t.hosts[host].with(func(m *membership.Member, now time.Time) { m.Finish(now) })
}

// Fail has a host report a failure to the head.
func (t *Tree) Fail(host int, report string) {
	m := &proto.Message{Host: int32(host), Data: []byte(report)}
	t.hosts[host].upward(&proto.Up{Word: &proto.Up_Fails{Fails: m}})
}

// End has the head tell all hosts that the job is over. Nobody is lost or missing after that.
func (t *Tree) End(report string) {
	h := t.hosts[0]
	h.with(func(m *membership.Member, _ time.Time) { m.End() })
	h.tellBelow(&proto.Down{Word: &proto.Down_Over{Over: []byte(report)}})
}

// Leave ends a host once its parent has been sent all that it had to say.
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

// Vanish ends a host of which nothing more is heard.
func (t *Tree) Vanish(host int) { t.hosts[host].leave((*pipe).hang) }
