package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

type hostSwitch struct {
	*packetswitch.Switch
	h       *host
	agent   *agent.Agent
	task    *kernel.Task
	started bool
	failing bool // it has told other hosts that its job has failed, by bytes that no proc has sent
	procs   map[wire.WorldRank]*procLink
	ends    []*kernel.End // all ends that it ever had
}

// newSwitch makes the switch of a host. It is idle until start.
func (h *host) newSwitch(a *agent.Agent) (*hostSwitch, error) {
	x := &hostSwitch{h: h, agent: a, procs: make(map[wire.WorldRank]*procLink)}
	x.task = h.s.w.k.Go(fmt.Sprintf("host %d", h.rank), func(t *kernel.Task) {
		for !x.started {
			t.Park("the other hosts of its site")
		}
		x.Run()
	}, nil)
	spin, err := polling.NewSpinner("0")
	if err != nil {
		return nil, err
	}
	x.Switch, err = packetswitch.New(packetswitch.Config{Agent: a, Machine: x, Spin: spin, Notify: x.noticed, Delivered: x.delivered})
	return x, err
}

func (x *hostSwitch) start() {
	x.started = true
	x.task.Wake()
}

func (x *hostSwitch) noticed(ev agent.Event) {
	if k := x.h.s.w.k; k.Tracing() {
		k.Tracef("host %d: %v", x.h.rank, ev)
	}
	x.h.s.noticed(x.h, ev)
}

func (x *hostSwitch) delivered(rank wire.WorldRank) bool { return !x.procs[rank].InFlight() }

func (x *hostSwitch) attachProc(e *kernel.End, rank wire.WorldRank) error {
	l := &procLink{End: e, s: x.h.s, rank: rank, host: x.h.rank}
	x.procs[rank], x.ends = l, append(x.ends, e)
	return x.AttachProc(l, rank)
}

func (x *hostSwitch) linked(rank wire.WorldRank) bool { return !x.procs[rank].over }

func (x *hostSwitch) crash() {
	x.task.Kill()
	for _, e := range x.ends {
		_ = e.Close()
	}
}

// NewSet creates the set in which the switch sleeps.
func (x *hostSwitch) NewSet() (machine.Set, error) { return observedSet{x.task.NewSet(), x}, nil }

// AfterFunc sets a timer, which does nothing once the switch is dead.
func (x *hostSwitch) AfterFunc(d time.Duration, f func()) machine.Timer {
	return x.h.s.w.k.After(d, func() {
		if !x.task.Ended() {
			f()
		}
	})
}

// Now is virtual time.
func (x *hostSwitch) Now() time.Time { return x.h.s.w.time() }

// observedSet shows the observer the agent's figures before each sleep.
type observedSet struct {
	*kernel.Set
	x *hostSwitch
}

// Wait sleeps.
func (s observedSet) Wait(timeout time.Duration) ([]poll.Event, error) {
	if o, ok := s.x.h.s.w.cfg.Observer.(AgentObserver); ok && timeout < 0 && !s.x.failing {
		o.Agent(int(s.x.h.rank), s.x.agent.Stats())
	}
	return s.Set.Wait(timeout)
}

// procLink is the switch's end of the link to a proc. Such links do not break while both sides
// live: nothing could tell what was lost.
type procLink struct {
	*kernel.End
	s    *site
	rank wire.WorldRank
	host wire.HostRank
	over bool // it has ended
}

// Recv is called by the switch.
func (l *procLink) Recv(batch [][]byte) (int, error) {
	n, err := l.End.Recv(batch)
	if err != nil && !l.over {
		l.over = true
		if !inOrder(err) {
			l.s.fail(ending.ConnectionLost(fmt.Sprintf("rank %d: its link to host %d: %v", l.rank, l.host, err), err))
		}
	}
	return n, err
}

var _ link.Link = (*procLink)(nil)
