package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/internal/sim/kernel"
)

type host struct {
	t       *Tree
	self    int
	member  *membership.Member
	here    bool // the host accepts connections
	gone    bool
	joined  bool  // the host's parent has accepted it
	up      *pipe // nil at the head, and before the host has dialled
	below   map[int]*pipe
	givenUp map[int]bool   // children that were declared lost
	listens map[int]string // at the head: addresses of hosts
	seekers []seeker       // at the head: hosts that wait for the address of their parent
	timer   *kernel.Timer
	traffic Traffic

	questions neighbour.Questions
}

type seeker struct {
	p    *pipe
	host int
}

const address = "10.77.100.100:40000"

var errEnded = errors.New("its connection has ended")

func (h *host) with(f func(m *membership.Member, now time.Time)) {
	if h.gone {
		return
	}
	f(h.member, h.t.cfg.Time())
	for s, ok := h.member.Next(); ok && !h.gone; s, ok = h.member.Next() {
		h.step(s)
	}
	if !h.gone && h.here {
		h.timer.Reset(h.member.Deadline().Sub(h.t.cfg.Time()))
	}
}

func (h *host) come() {
	if h.gone {
		return
	}
	h.here = true
	h.timer = h.t.cfg.Kernel.After(0, func() { h.with(func(m *membership.Member, now time.Time) { m.Tick(now) }) })
	if h.self == 0 {
		h.t.cfg.Owner.Joined(0)
		return
	}
	h.t.cfg.Kernel.After(h.t.until.Sub(h.t.cfg.Time()), func() {
		if !h.joined && !h.gone {
			h.t.cfg.Owner.ParentNotFound(h.self)
		}
	})
	h.seek()
}

func (h *host) seek() {
	switch now := h.t.cfg.Time(); {
	case h.gone || !now.Before(h.t.until):
	case !h.t.hosts[0].here || h.t.hosts[0].gone:
		h.later()
	default:
		p := h.dial(0, h.placed)
		p.send(h.newcomer())
	}
}

func (h *host) later() {
	h.up = nil
	h.t.cfg.Kernel.After(pause, h.seek)
}

func (h *host) newcomer() *proto.Newcomer {
	return &proto.Newcomer{Host: int32(h.self), Version: "v0.0.0-20260101000000-0123456789ab", File: make([]byte, 32)}
}

func (h *host) dial(to int, hear func(pb.Message)) *pipe {
	mine, its := connect(h.t.cfg.Link(h.self, to), h.t.buf, h.t.cfg.Thin)
	mine.run(&h.traffic, hear, func(why error) {
		if h.joined {
			h.lost(h.t.cfg.Shape.Parent(h.self), why)
		} else if !h.gone {
			h.later()
		}
	})
	h.t.hosts[to].take(its)
	h.up = mine
	return mine
}

func (h *host) placed(m pb.Message) {
	at := m.(*proto.Parent)
	if at.GetAddress() == "" {
		h.up.hear = h.fromParent
	} else {
		h.up.close()
		parent := int(at.GetHost())
		if x := h.t.hosts[parent]; !x.here || x.gone {
			h.later()
			return
		}
		h.dial(parent, h.fromParent)
	}
	h.up.send(&proto.Up{Word: &proto.Up_Hello{Hello: h.newcomer()}})
}

func (h *host) fromParent(m pb.Message) {
	w := m.(*proto.Down) // no other type is sent down
	if !h.joined {
		h.joined = true
		h.with(func(m *membership.Member, now time.Time) { m.Join(now) })
		if first, end := h.t.cfg.Shape.Children(h.self); first < end {
			h.up.send(&proto.Up{Word: &proto.Up_Listens{Listens: &proto.Listens{Host: int32(h.self), Address: address}}})
		}
		h.t.cfg.Owner.Joined(h.self)
	}
	var forBelow bool
	h.with(func(m *membership.Member, now time.Time) {
		forBelow = neighbour.FromParent(m, h.t.cfg.Shape.Parent(h.self), w, now)
	})
	if forBelow {
		h.tellBelow(w)
	}
	switch x := w.GetWord().(type) {
	case *proto.Down_Job:
		h.t.cfg.Owner.Started(h.self, x.Job)
	case *proto.Down_Over:
		h.t.cfg.Owner.JobEnded(h.self, string(x.Over))
	case *proto.Down_Asks, *proto.Down_Answer:
		h.fromHead(w)
	}
}

func (h *host) fromHead(w *proto.Down) {
	m, to, pass := h.questions.FromParent(w)
	switch {
	case pass && !h.toward(to, w) && w.GetAsks() != nil:
		h.up.send(neighbour.Reply(w.GetAsks(), nil, neighbour.ErrAbsent))
	case m != nil:
		h.t.cfg.Owner.Asked(h.self, m.GetData(), func(b []byte) {
			if !h.gone {
				h.up.send(neighbour.Reply(m, b, nil))
			}
		})
	}
}

// toward sends a message to the child on the way to a host. It returns false if that child is not
// connected.
func (h *host) toward(to int, w *proto.Down) bool {
	next := h.t.cfg.Shape.ChildToward(h.self, to)
	p := h.below[next]
	if p == nil || h.givenUp[next] {
		return false
	}
	p.send(w)
	return true
}

func (h *host) ask(to int, question []byte, limit time.Duration, answered func(answer []byte, err error)) {
	if to == h.self {
		h.t.cfg.Owner.Asked(to, question, func(b []byte) { answered(b, nil) })
		return
	}
	done := false
	once := func(b []byte, err error) {
		if !done {
			done = true
			answered(b, err)
		}
	}
	id, up, down := h.questions.Ask(to, question, limit, func(a *proto.Message) { once(a.GetData(), neighbour.ErrorOf(a)) })
	switch {
	case up != nil:
		h.up.send(up)
	case !h.toward(to, down):
		h.questions.Drop(id)
		once(nil, neighbour.ErrAbsent)
		return
	}
	h.t.cfg.Kernel.After(limit, func() {
		h.questions.Drop(id)
		once(nil, context.DeadlineExceeded)
	})
}

func (h *host) take(p *pipe) {
	child := 0
	p.run(&h.traffic, func(m pb.Message) {
		switch x := m.(type) {
		case *proto.Newcomer:
			h.seekers = append(h.seekers, seeker{p, int(x.GetHost())})
			h.place()
		case *proto.Up:
			if hello := x.GetHello(); hello != nil {
				child = h.attach(int(hello.GetHost()), p)
			} else if child > 0 {
				h.fromChild(child, x)
			}
		}
	}, func(why error) {
		if child > 0 {
			h.lost(child, why)
		}
	})
}

func (h *host) place() {
	var wait []seeker
	for _, q := range h.seekers {
		if at := neighbour.ParentOf(h.t.cfg.Shape, q.host, h.listens); at != nil {
			q.p.send(at)
		} else {
			wait = append(wait, q)
		}
	}
	h.seekers = wait
}

// attach accepts a child, and returns its number; 0 if it is refused.
func (h *host) attach(child int, p *pipe) int {
	var err error
	h.with(func(m *membership.Member, now time.Time) {
		if err = m.Attach(child, now); err == nil {
			h.below[child] = p
			p.send(neighbour.BeatDown)
		}
	})
	if errors.Is(err, membership.ErrUnknownHost) && !h.gone {
		h.t.cfg.Owner.Misplaced(h.self, child)
	}
	if err != nil {
		p.close()
		return 0
	}
	return child
}

func (h *host) fromChild(child int, w *proto.Up) {
	var forHead bool
	var err error
	h.with(func(m *membership.Member, now time.Time) { forHead, err = neighbour.FromChild(m, child, w, now) })
	switch {
	case err != nil && !h.gone:
		h.below[child].close()
		h.lost(child, err)
	case err == nil && forHead:
		h.upward(w)
	}
}

func (h *host) upward(w *proto.Up) {
	switch x := w.GetWord().(type) {
	case *proto.Up_Fails:
		if h.self == 0 && !h.gone {
			h.t.cfg.Owner.Fails(int(x.Fails.GetHost()), string(x.Fails.GetData()))
		}
	case *proto.Up_Listens:
		if h.self == 0 && !h.gone {
			h.listens[int(x.Listens.GetHost())] = x.Listens.GetAddress()
			h.place()
		}
	case *proto.Up_Answer:
		if h.self == 0 && !h.gone {
			h.questions.Answer(x.Answer)
		}
	case *proto.Up_Asks:
		if m := x.Asks.GetMessage(); h.self == 0 && !h.gone {
			back := func(b []byte, err error) {
				if !h.gone {
					h.toward(int(m.GetHost()), neighbour.ForwardAnswer(m, b, err))
				}
			}
			if to := int(x.Asks.GetTo()); to >= 0 && to < h.t.cfg.Shape.Hosts {
				h.ask(to, m.GetData(), time.Duration(m.GetLimit()), back)
			} else {
				back(nil, neighbour.ErrAbsent)
			}
		}
	}
	if h.up != nil && !h.gone {
		h.up.send(w)
	}
}

func (h *host) tellBelow(w *proto.Down) {
	first, end := h.t.cfg.Shape.Children(h.self)
	for c := first; c < end && !h.gone; c++ {
		if p := h.below[c]; p != nil {
			p.send(w)
		}
	}
}

func (h *host) lost(who int, why error) {
	why = cmp.Or(why, errEnded)
	h.with(func(m *membership.Member, now time.Time) { m.Disconnected(who, why, now) })
}

func (h *host) step(s membership.Step) {
	switch s.Kind {
	case membership.Beat:
		for _, who := range s.Hosts {
			if p := h.below[who]; p != nil {
				p.send(neighbour.BeatDown)
			} else if h.up != nil {
				h.up.send(neighbour.BeatUp)
			}
		}
	case membership.Report:
		h.up.send(neighbour.ToParent(s))
	case membership.Complete:
		parts := make([][]byte, 0, len(s.Parts))
		for _, x := range s.Parts {
			parts = append(parts, x.Data)
		}
		h.t.cfg.Owner.Gathered(parts)
	case membership.Wait:
		if h.self > 0 && h.up != nil {
			h.up.send(neighbour.ToParent(s))
		}
	case membership.Finished:
		if h.self == 0 {
			h.t.cfg.Owner.Finished()
		} else {
			h.up.send(neighbour.ToParent(s))
		}
	case membership.Lost:
		h.givenUp[s.Hosts[0]] = true
		h.t.cfg.Owner.Lost(h.self, s.Hosts[0], s.Err)
	case membership.LostBelow:
		h.givenUp[s.Hosts[0]] = true
		h.t.cfg.Owner.LostBelow(h.self, s.Hosts, s.Err)
	case membership.Missing:
		h.t.cfg.Owner.Missing(s.Hosts, fmt.Errorf("%w: %v", s.Err, s.Hosts))
	}
}

// leave ends the host; by ends each of its connections.
func (h *host) leave(by func(*pipe)) {
	if h.gone {
		return
	}
	h.gone = true
	h.timer.Stop()
	if h.up != nil {
		by(h.up)
	}
	for c, end := h.t.cfg.Shape.Children(h.self); c < end; c++ {
		if p := h.below[c]; p != nil {
			by(p)
		}
	}
	for _, q := range h.seekers {
		by(q.p)
	}
}
