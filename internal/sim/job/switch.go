package job

import (
	"bytes"
	"errors"
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
	x.Switch, err = packetswitch.New(packetswitch.Config{Agent: a, Machine: x, Spin: spin, Notify: x.noticed, Answer: func(_ wire.HostRank, q []byte, reply func([]byte)) { answerQuestion(h, q, reply) }, Delivered: x.delivered})
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
		o.Agent(int(s.x.h.rank), s.x.agent.Counts())
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

// maxTold is the length of the longest answer of a simulated host in bytes: several windows.
const maxTold = 3 * wire.AnswerWindow

// Questions counts the questions over channels of a job.
type Questions struct{ Asked, Answered, Long int }

// askOverChannels makes a host ask the nodes of random others, one after the other, as nodes do for
// impi-node links, and checks that each answer is to its question.
func askOverChannels(h *host, left int) {
	s, w := h.s, h.s.w
	if left == 0 {
		return
	}
	w.k.After(w.k.Between(0, 20*time.Millisecond), func() {
		to := wire.HostRank(w.k.Rand().IntN(len(s.job.Hosts)))
		size := 1 + w.k.Rand().IntN(2000)
		if w.k.Chance(0.2) {
			size = 1 + w.k.Rand().IntN(maxTold)
		}
		question := fmt.Appendf(nil, "%d %d: host %d asks host %d", size, left, h.rank, to)
		asked, told := w.k.Now(), false
		if size < 2000 {
			w.k.After(answerLimit(w, size), func() { mustHear(h, to, asked, &told) })
		}
		w.questions.Asked++
		h.sw.AskLater([]wire.HostRank{to}, question, func(data []byte, _ wire.HostRank, err error) {
			told = true
			switch {
			case err == nil && !bytes.Equal(data, toldBy(to, question)):
				misled(h, fmt.Errorf("%q is answered by %d bytes, %.60q", question, len(data), data))
			case err == nil:
				w.questions.Answered++
				if len(data) > wire.AnswerWindow {
					w.questions.Long++
				}
			case errors.Is(err, packetswitch.ErrNoAnswer):
				mustHear(h, to, asked, new(bool))
			}
			w.k.After(0, func() { askOverChannels(h, left-1) })
		})
	})
}

// answerLimit is how long the answer to a question may take. Both may wait behind parts of long
// ones.
func answerLimit(w *Simulation, size int) time.Duration {
	return 50*time.Millisecond + 4*hop(&w.cfg.Links.Channel, size+2*wire.AnswerWindow)
}

// mustHear notes that an answer has not come, unless one of the two hosts has finished, or
// something went wrong in the job since the question.
func mustHear(h *host, from wire.HostRank, asked time.Duration, told *bool) {
	other := h.s.w.hosts[from]
	if !*told && len(h.s.w.hits) == 0 && !finishing(h) && !finishing(other) {
		misled(h, fmt.Errorf("host %d has not answered what it was asked after %v", from, asked))
	}
}

// finishing reports whether the host has finished or ends.
func finishing(h *host) bool { return h.over || h.ends() || h.sw == nil || h.fini() }

func misled(h *host, err error) {
	if w := h.s.w; w.wrong == nil {
		w.wrong = fmt.Errorf("%w: host %d: %w", ErrDisorder, h.rank, err)
	}
}

// answerQuestion answers the questions of other hosts. It is called by the switch.
func answerQuestion(h *host, question []byte, reply func([]byte)) {
	k := h.s.w.k
	data := toldBy(h.rank, question)
	k.After(k.Between(0, 2*time.Millisecond), func() { reply(data) })
}

// toldBy is what a host answers.
func toldBy(host wire.HostRank, question []byte) []byte {
	size := 0
	if _, err := fmt.Sscanf(string(question), "%d", &size); err != nil {
		return nil
	}
	b := make([]byte, 0, size+100)
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, "%d: host %d answers %s; ", i, host, question)
	}
	return b[:size]
}

// Questions returns how many questions hosts have asked over channels, and how many were answered.
func (r Result) Questions() Questions { return r.World.questions }
