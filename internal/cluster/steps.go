package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
)

// with calls f with the member, and carries out the steps that result.
func (h *Host) with(f func(m *membership.Member, now time.Time)) {
	h.mu.Lock()
	f(h.member, time.Now())
	var later []func()
	for s, ok := h.member.Next(); ok; s, ok = h.member.Next() {
		if l := h.step(s); l != nil {
			later = append(later, l)
		}
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	for _, l := range later {
		l()
	}
}

// take is with for calls that may fail.
func (h *Host) take(f func(m *membership.Member, now time.Time) error) (err error) {
	h.with(func(m *membership.Member, now time.Time) { err = f(m, now) })
	return err
}

// step carries out a step of the member. It is called with the lock; what it returns is called
// without.
func (h *Host) step(s membership.Step) (later func()) {
	head := h.cfg.Self == 0
	switch s.Kind {
	case membership.Beat:
		for _, who := range s.Hosts {
			if q := h.below[who]; q != nil {
				q.add(neighbour.BeatDown)
			} else if h.up != nil && who == h.up.host {
				h.up.tell(neighbour.BeatUp)
			}
		}
	case membership.Report:
		h.up.tell(neighbour.ToParent(s))
	case membership.Complete:
		for _, x := range s.Parts {
			h.parts = append(h.parts, x.Data)
		}
		close(h.whole)
	case membership.Wait:
		if head {
			return func() { h.cfg.Owner.Waits(s.Hosts) }
		}
		h.up.tell(neighbour.ToParent(s))
	case membership.Finished:
		close(h.finished)
		if !head {
			h.up.tell(neighbour.ToParent(s))
		}
	case membership.Lost:
		h.forget(s.Hosts[0])
		why := fmt.Errorf("host %s is lost: %w: %s", h.cfg.Name(s.Hosts[0]), s.Err, whatOfLost)
		h.fail(why)
		return func() { h.cfg.Owner.Lost(s.Hosts[0], why) }
	case membership.LostBelow:
		child := s.Hosts[0]
		h.forget(child)
		if q := h.below[child]; q != nil {
			q.end()
		}
		why := fmt.Errorf("host %s is lost: %w: %s", h.cfg.Name(child), s.Err, whatOfLost)
		return func() { h.cfg.Owner.LostBelow(s.Hosts, why) }
	case membership.Missing:
		h.fail(fmt.Errorf("%w: %s", s.Err, names(h.cfg.Name, s.Hosts)))
	}
	return nil
}

const whatOfLost = "see on that machine whether impi-node was killed, the machine was restarted or its network is down"

// forget makes Close not wait for a host that is lost. It is called with the lock.
func (h *Host) forget(host int) {
	if h.up != nil && host == h.up.host {
		h.up.lost = true
		return
	}
	h.gone[host] = struct{}{}
	select {
	case h.left <- struct{}{}:
	default:
	}
}

// fail makes Gather and Report fail. It is called with the lock.
func (h *Host) fail(why error) {
	if h.failed == nil {
		h.failed = why
		close(h.broken)
	}
}

// most is how many hosts a message names at most.
const most = 8

func names(name func(host int) string, hosts []int) string {
	var list []string
	for i, x := range hosts {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(hosts)-most))
			break
		}
		list = append(list, name(x))
	}
	return strings.Join(list, ", ")
}

func (h *Host) clock() {
	for {
		h.mu.Lock()
		at := h.member.Deadline()
		h.mu.Unlock()
		timer := time.NewTimer(time.Until(at))
		select {
		case <-timer.C:
			h.with(func(m *membership.Member, now time.Time) { m.Tick(now) })
		case <-h.wake:
		case <-h.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}
