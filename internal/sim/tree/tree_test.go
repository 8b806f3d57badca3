package tree

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// rig is a tree and the events that its owner was told of.
type rig struct {
	k     *kernel.Kernel
	t     *Tree
	heard []string
	parts int
}

func (r *rig) say(format string, args ...any) {
	r.heard = append(r.heard, fmt.Sprintf("%v ", r.k.Now().Round(time.Second))+fmt.Sprintf(format, args...))
}

func (r *rig) Joined(host int) { r.t.Submit(host, []byte{byte(host)}) }
func (r *rig) Asked(host int, question []byte, answer func([]byte)) {
	r.k.After(time.Second, func() { answer(fmt.Appendf(nil, "%s, says %d", question, host)) })
}
func (r *rig) Gathered(parts [][]byte) {
	for i, p := range parts {
		if int(p[0]) == i {
			r.parts++
		}
	}
	r.t.Start([]byte("job"))
}
func (r *rig) Started(host int, job []byte) {
	if string(job) == "job" && host == r.t.cfg.Shape.Hosts-1 {
		r.say("started")
	}
}
func (r *rig) Finished()                        { r.say("finished") }
func (r *rig) Fails(host int, report string)    { r.say("host %d reports: %s", host, report) }
func (r *rig) JobEnded(host int, report string) { r.say("over at %d: %s", host, report) }
func (r *rig) Lost(at, who int, why error) {
	kind := "gone"
	if errors.Is(why, membership.ErrSilent) {
		kind = "silent"
	}
	r.say("host %d has lost host %d: %s", at, who, kind)
	if at > who && at > 0 {
		r.t.Crash(at)
	} else {
		r.t.Fail(at, fmt.Sprintf("host %d is lost", who))
	}
}
func (r *rig) LostBelow(at int, hosts []int, _ error) {
	r.say("host %d goes on without hosts %v", at, hosts)
}
func (r *rig) Missing(hosts []int, _ error) { r.say("missing: %v", hosts) }
func (r *rig) Misplaced(at, child int)      { r.say("host %d sent to host %d", child, at) }
func (r *rig) ParentNotFound(host int)      { r.say("alone: %d", host) }

func newRig(t *testing.T, hosts, fan int) *rig {
	t.Helper()
	r := &rig{k: kernel.New(3)}
	var err error
	r.t, err = New(Config{
		Kernel: r.k, Shape: membership.Tree{Hosts: hosts, Fan: fan}, Beat: 2 * time.Second, Silence: 8 * time.Second, Limit: time.Minute, Late: time.Millisecond,
		Time: func() time.Time { return time.Unix(1000, 0).Add(r.k.Now()) }, Owner: r,
		Link: func(from, to int) *kernel.Link {
			return r.k.NewLink(kernel.LinkSpec{Name: fmt.Sprintf("host %d to %d", from, to), Delay: time.Millisecond, Capacity: 20}, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) until(t *testing.T, end time.Duration) {
	t.Helper()
	if err := r.k.Run(1_000_000, end, func() bool { return false }); !errors.Is(err, kernel.ErrEndless) {
		t.Fatal(err)
	}
}

func (r *rig) wants(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(r.heard) // the order of events at the same time is random
	slices.Sort(want)
	if !reflect.DeepEqual(r.heard, want) {
		t.Errorf("the owner has heard %q, not %q", r.heard, want)
	}
}

func TestAllHostsComeAndFinish(t *testing.T) {
	r := newRig(t, 8, 2)
	r.until(t, 20*time.Second)
	for h := range 8 {
		r.t.Finish(h)
	}
	r.until(t, 21*time.Second)
	r.wants(t, "0s started", "20s finished")
	if r.parts != 8 {
		t.Errorf("the head has %d parts", r.parts)
	}
}

func TestAHostIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(*Tree, int)
		want  []string
	}{
		"crashed": {(*Tree).Crash, []string{"0s started", "10s host 0 has lost host 1: gone", "10s host 0 reports: host 1 is lost", "10s host 3 has lost host 1: gone"}},
		"silent":  {(*Tree).Vanish, []string{"0s started", "16s host 0 has lost host 1: silent", "16s host 0 reports: host 1 is lost", "16s host 3 has lost host 1: silent"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 4, 2)
			r.until(t, 10*time.Second)
			c.leave(r.t, 1)
			r.until(t, 30*time.Second)
			r.wants(t, c.want...)
		})
	}
}

// TestHostsGoOn: hosts go on without one that is lost and those below it, which lose their parent.
func TestHostsGoOn(t *testing.T) {
	r := newRig(t, 8, 2)
	r.until(t, 10*time.Second)
	for h := range 8 {
		r.t.SurviveLosses(h)
	}
	r.t.Crash(1)
	for _, h := range []int{0, 2, 5, 6} {
		r.t.Finish(h)
	}
	r.until(t, 11*time.Second)
	r.wants(t, "0s started", "10s host 0 goes on without hosts [1 3 4 7]", "10s host 3 has lost host 1: gone", "10s host 4 has lost host 1: gone", "10s host 7 has lost host 3: gone", "10s finished")
}

func TestALossIsReportedToTheHead(t *testing.T) {
	r := newRig(t, 4, 2)
	r.until(t, 10*time.Second)
	r.t.Crash(3)
	r.until(t, 11*time.Second)
	r.wants(t, "0s started", "10s host 1 has lost host 3: gone", "10s host 1 reports: host 3 is lost")
	r.t.End("so it is")
	r.until(t, 30*time.Second)
	r.wants(t, "0s started", "10s host 1 has lost host 3: gone", "10s host 1 reports: host 3 is lost", "10s over at 2: so it is", "10s over at 1: so it is")
}

func TestAHostDoesNotCome(t *testing.T) {
	r := newRig(t, 4, 2)
	r.t.Crash(1)
	r.until(t, 61*time.Second)
	r.wants(t, "1m0s alone: 3", "1m0s missing: [1 3]")
}

// TestHostsAsk: hosts ask each other, a host that is gone, and one that does not answer in time.
func TestHostsAsk(t *testing.T) {
	r := newRig(t, 8, 2)
	r.until(t, 10*time.Second)
	ask := func(host, to int, limit time.Duration) {
		r.t.Ask(host, to, fmt.Appendf(nil, "%d asks", host), limit, func(answer []byte, err error) { r.say("%q %v", answer, err) })
	}
	for _, x := range [][2]int{{7, 4}, {0, 7}, {7, 0}, {2, 2}} {
		ask(x[0], x[1], time.Minute)
	}
	ask(3, 6, time.Millisecond)
	r.until(t, 20*time.Second)
	r.wants(t, "0s started", `11s "7 asks, says 4" <nil>`, `11s "0 asks, says 7" <nil>`, `11s "7 asks, says 0" <nil>`, `11s "2 asks, says 2" <nil>`,
		`10s "" context deadline exceeded`)
	r.t.Crash(7)
	r.until(t, 21*time.Second)
	r.heard = nil
	ask(6, 7, time.Minute)
	ask(5, 9, time.Minute)
	r.until(t, 30*time.Second)
	r.wants(t, `20s "" the host is not there`, `20s "" the host is not there`)
}
