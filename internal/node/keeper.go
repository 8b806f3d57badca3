package node

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/lasting"
)

// How often a channel is looked after: while somebody is to answer or bytes are
// pending, and while there is no connection.
const (
	keepAnswer = 500 * time.Microsecond
	keepApart  = 10 * time.Millisecond
)

// errNotResumed is why a lasting channel ends before its time.
var errNotResumed = errors.New("the channel was lost and not resumed")

// keeper is a lasting channel of a switch and what is done to keep it. All of it
// is the loop's.
type keeper struct {
	*lasting.Link
	s     *packetSwitch
	p     *port
	limit time.Duration
	again func(why error) // has somebody dial, who calls take or lose; nil at the end that is dialled
	from  origin          // of the connection, or of the last one

	memory  bool      // the connection is one of which the poll set knows nothing without Arm
	lost    bool      // the connection was let go of, and nobody has looked yet
	apart   bool      // there is none
	made    int       // connections before that
	since   time.Time // of apart, or of leaving
	why     error     // why the last one was lost
	asked   bool      // again was called
	leaving bool      // the peer's bytes have all come
	timer   *time.Timer
}

// attachLasting makes a channel part of the switch that is to outlive l, its
// first connection. It is called before the loop runs.
func (s *packetSwitch) attachLasting(l link.Link, host wire.HostRank, id resume.Session, limit time.Duration, again func(error)) (*keeper, error) {
	k := &keeper{s: s, limit: limit, again: again, from: originOf(l)}
	k.Link = lasting.New(lasting.Config{
		Session: id, Dialler: again != nil, Window: lasting.Window, Released: k.released,
	})
	k.p = &port{id: agent.LinkID(len(s.ports)), link: k, rank: agent.NoRank, host: host, keeper: k}
	if l.Handle() == link.NoHandle {
		return nil, errNoHandle
	}
	s.ports = append(s.ports, k.p)
	s.keepers = append(s.keepers, k)
	k.timer = time.AfterFunc(keepAnswer, func() { s.post(func() { s.mend(k) }) })
	k.Start(l, time.Now())
	s.refit(k)
	return k, s.agent.AttachHost(k.p.id, host)
}

// released forgets a connection that is about to be closed.
func (k *keeper) released(handle int) {
	if k.p.interest != 0 {
		_ = k.s.set.Remove(handle) // it is open, and in the set
		k.p.interest = 0
	}
	k.lost = true
	k.s.waker.Wake()
}

// take is given a further connection, by any goroutine.
func (k *keeper) take(l link.Link) {
	ok := k.s.post(func() {
		k.asked = false
		if k.s.ports[k.p.id] != k.p {
			_ = l.Close()
			return
		}
		k.from = originOf(l)
		k.Start(l, time.Now())
		k.s.refit(k)
		k.s.mend(k)
	})
	if !ok {
		_ = l.Close()
	}
}

// lose is told that there is no further connection, by any goroutine.
func (k *keeper) lose(reason string) {
	k.s.post(func() {
		k.giveUp(reason)
		k.s.mend(k)
	})
}

func (k *keeper) giveUp(reason string) {
	err := fmt.Errorf("%w: %s", errNotResumed, reason)
	if k.why != nil {
		err = fmt.Errorf("%w; it was lost because: %w", err, k.why)
	}
	k.Fail(err)
}

// refit puts a new connection into the poll set.
func (s *packetSwitch) refit(k *keeper) {
	if k.p.ended != nil || k.p.interest != 0 || k.Handle() == link.NoHandle {
		return
	}
	k.memory = k.Limits().Memory
	s.want(k.p, link.Readable)
	if k.p.interest != 0 {
		s.warm(k.p)
	}
}

// mendLost looks after the channels that have lost their connections.
func (s *packetSwitch) mendLost() {
	for _, k := range s.keepers {
		if k.lost {
			s.mend(k)
		}
	}
}

// mend looks after a channel, whatever has become of it, and sees to it that it
// is looked after again if that is needed.
func (s *packetSwitch) mend(k *keeper) {
	if s.ports[k.p.id] != k.p {
		return
	}
	k.lost = false
	now := time.Now()
	before := k.Handle()
	if k.Welcome(now); k.Handle() != before {
		s.refit(k)
	}
	if k.leaving {
		k.Pump()
	} else {
		k.Push()
	}
	if s.settle(k, now) {
		s.flush(k.p)
		s.output()
		if k.Expects() || k.leaving {
			k.timer.Reset(keepAnswer)
		} else if k.apart {
			k.timer.Reset(keepApart)
		}
	}
}

// settle acts on how a channel is. False: it is closed.
func (s *packetSwitch) settle(k *keeper, now time.Time) bool {
	st := k.Status(now)
	if st.State == resume.Apart {
		k.parted(st.Err, now)
		st = k.Status(now)
	}
	switch {
	case st.State == resume.Up:
		k.apart = false
		if !k.leaving || now.Sub(k.since) < k.limit {
			return true
		}
	case st.State == resume.Failed && !k.leaving:
		s.end(k.p, st.Err)
		s.output()
		return false
	case st.State == resume.Apart || st.State == resume.Joining || !k.leaving:
		return true
	}
	s.closed(k.p) // both ends know that all is over
	s.output()
	return false
}

// parted sees to a channel without a connection.
func (k *keeper) parted(why error, now time.Time) {
	if made := k.Made(); !k.apart || made != k.made { // it may have been up in between
		k.apart, k.made, k.since = true, made, now
	}
	if why != nil {
		k.why = why
	}
	away := now.Sub(k.since)
	switch {
	case k.leaving && away > lingering:
		k.giveUp("the peer has what it needs") // nobody hears it
	case away > k.limit && (k.again == nil || away > k.limit+lingering):
		k.giveUp(fmt.Sprintf("nobody has connected again within %v", k.limit))
	case k.again != nil && !k.asked && away >= k.Pause():
		k.asked = true
		k.again(k.why)
	}
}

// leave waits with the end of a channel until the peer has ours.
func (k *keeper) leave() {
	if !k.apart {
		k.since = time.Now()
	}
	k.leaving = true
	_ = k.CloseSend() // fails if the channel has failed
	k.timer.Reset(keepAnswer)
}

// wantLasting is want for a lasting channel: it is the machine that knows what its
// connection is to be waited for.
func (s *packetSwitch) wantLasting(p *port) {
	k := p.keeper
	what, h := k.Wants(), k.Handle()
	if h == link.NoHandle || p.interest == what {
		return
	}
	change := s.set.Modify
	if p.interest == 0 {
		change = s.set.Add
	}
	if err := change(h, uint32(p.id), what); err != nil {
		k.Lost(err)
		return
	}
	p.interest = what
}

// readStirred reads the channels that may have bytes of which the poll set knows
// nothing.
func (s *packetSwitch) readStirred() (progress bool) {
	for _, k := range s.keepers {
		if k.p.ended == nil && (k.Stirred() || k.memory) && s.read(k.p) {
			progress = true
		}
	}
	if progress {
		s.output()
	}
	return progress
}

// armLasting readies the channels for a sleep. False: there is something to do
// first.
func (s *packetSwitch) armLasting() bool {
	ready := true
	for _, k := range s.keepers {
		if k.p.ended != nil {
			continue
		}
		if k.Arm(link.Readable) {
			s.read(k.p)
			ready = false
		}
		if k.p.ended == nil {
			s.wantLasting(k.p)
		}
	}
	if !ready {
		s.output()
	}
	return ready
}

// lingers tells whether a port's end is one that the other side has to learn of.
func (p *port) lingers(cause error) bool { return p.keeper != nil && errors.Is(cause, io.EOF) }
