package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
)

func (s *site) finish() {
	if s.left || s.dead {
		return
	}
	if !s.allFinished() || s.left {
		return
	}
	err := s.client.Finish()
	s.say()
	var f *ending.Failure
	if err != nil && s.watch.Tie.Outlives(err) {
		err = nil
	}
	if err != nil { // the server was lost while the procs ended
		f = ending.NodeFailed(err)
	} else {
		f = ownServerFailure(s)
	}
	s.end.Close()
	s.left, s.done, s.finished = true, true, f == nil
	s.over(f)
	s.conn.finish()
	s.timer.Stop()
	if s.machines != nil {
		s.machines.end(nil)
	}
	tellSpares(s, "")
	s.gone()
	atEnd := s.w.atEnd
	s.w.atEnd = nil
	for _, f := range atEnd {
		f()
	}
}

func (s *site) allFinished() bool {
	if s.machines != nil {
		return s.machines.finishing()
	}
	return !slices.ContainsFunc(s.hosts, func(h *host) bool { return !h.over }) && !slices.ContainsFunc(s.procs, func(p *proc) bool { return !p.judged })
}

// over records how the job has ended for the site. f is the failure with which it was shut down, or
// nil.
func (s *site) over(f *ending.Failure) {
	s.outcome = s.end.Conclude(f)
	if s.w.cfg.Survive {
		s.hosts[0].survival.rules.Sum(&s.outcome)
	}
	if f := s.outcome.Failure; f != nil {
		s.err = fmt.Errorf("%w: site %d: %w", ErrFailed, s.rank, f)
	}
}

func (s *site) gone() {
	s.names.close()
	for _, p := range s.parts {
		p.gone()
	}
}

// fail reports a failure. The job goes on until it is decided which failure is to blame.
func (s *site) fail(f *ending.Failure) {
	s.report(func(now time.Time) { s.end.Fail(now, f) })
}

// report calls f, which tells the site's ending something, and acts on the result.
func (s *site) report(f func(now time.Time)) {
	if s.left || s.dead {
		return
	}
	_, waited := s.end.Deadline()
	now := s.w.time()
	f(now)
	at, waits := s.end.Deadline()
	if (waits || s.end.Made()) && !(s.spared && survives(s.w)) {
		s.w.broken()
	}
	if waits && !waited {
		s.w.broke.waits = max(s.w.broke.waits, at.Sub(now))
	}
	if waits {
		s.w.k.After(at.Sub(now), s.decide)
		return
	}
	s.decide()
}

func (s *site) decide() {
	if s.left || s.dead {
		return
	}
	s.end.Tick(s.w.time())
	if f := s.end.Cause(); f != nil {
		s.giveUp(f)
	}
}

func (s *site) giveUp(f *ending.Failure) {
	s.left = true
	s.err = fmt.Errorf("%w: site %d: %w", ErrFailed, s.rank, f)
	s.w.k.Tracef("site %d fails: %v", s.rank, f)
	notice := noticeOf(s.hosts[0], f)
	if notice.Server == ending.Resigns {
		s.client.Fail(f)
		s.say()
	}
	if s.conn != nil {
		s.conn.finish()
	}
	s.timer.Stop()
	if s.machines != nil {
		s.machines.end(f)
		return
	}
	s.w.k.After(s.w.k.Between(0, time.Millisecond), func() {
		if s.cfg.Foreign != nil {
			s.shutDown()
			return
		}
		tellPeers(s.hosts[0], f, notice, s.shutDown)
	})
}

// noticeOf returns whom the host's node tells of its end.
func noticeOf(h *host, f *ending.Failure) ending.Notice {
	return ending.EndingNode{Head: h.number == 0, Excluded: h.survival.rules.Excluded()}.Notice(f)
}

func tellPeers(h *host, f *ending.Failure, notice ending.Notice, then func()) {
	if !notice.Peers {
		then()
		return
	}
	h.tell(f.Text, then)
}

func (h *host) tell(text string, then func()) {
	if h.sw == nil || !h.sw.started || h.sw.task.Ended() {
		then()
		return
	}
	over := false
	once := func() {
		if !over {
			over = true
			then()
		}
	}
	k := h.s.w.k
	h.sw.failing = true
	h.sw.Fail(text, func() { k.After(0, once) })
	k.After(agent.TellTime, once)
}

func (s *site) shutDown() {
	if s.done {
		return
	}
	s.done = true
	for _, p := range s.procs {
		p.down()
		s.w.cfg.Worlds.gone(p)
	}
	for _, h := range s.hosts {
		h.close()
	}
	s.parentsFailed()
	s.over(s.end.Cause())
	tellSpares(s, s.err.Error())
	s.gone()
}

func (h *host) close() {
	for _, p := range h.s.procs {
		if p.h == h {
			p.down()
			h.s.w.cfg.Worlds.gone(p)
		}
	}
	h.cut()
}

func (h *host) cut() {
	if h.sw != nil {
		h.sw.crash()
	}
	for _, e := range h.conns {
		_ = e.Close()
	}
	for _, x := range h.backlog {
		_ = x.e.Close()
	}
	for _, e := range h.links {
		_ = e.Close()
	}
}

// crash is the sudden end of the node's process: the kernel closes its connections, and its procs
// end.
func (s *site) crash() {
	if s.dead || s.done {
		return
	}
	s.dead, s.left, s.done, s.spared = true, true, true, survives(s.w)
	leaveSpares(s)
	s.over(ending.NodeFailed(fmt.Errorf("the node of site %d has crashed", s.rank)))
	s.timer.Stop()
	if s.conn != nil {
		s.conn.close()
	}
	if s.machines != nil {
		s.machines.crash()
	}
	if serves(s) {
		s.w.server.crash()
	}
	for _, h := range s.hosts {
		h.cut()
		s.w.crashed(Endpoint{AtAgent, int(h.rank)})
	}
	for _, p := range s.procs {
		s.w.k.After(s.w.k.Between(0, 100*time.Microsecond), p.down)
		s.w.cfg.Worlds.gone(p)
	}
	if len(s.parts) == 0 {
		for _, p := range slices.Clone(s.spawner.running) { // their nodes are in the same process
			p.site.crash()
		}
	}
	s.parentsFailed()
	s.gone()
}

// declineTime is how long a site that does not join tries to tell the server.
const declineTime = 2 * time.Second

var errNoPlugin = errors.New("the plugin of transport sim cannot be started")

// failsEarly has a site of ours fail before it joins the job, one that has one machine.
func failsEarly(w *Simulation, f Fault) {
	var all []*site
	for _, s := range w.sites {
		if s.cfg.Foreign == nil && s.machines == nil && !serves(s) {
			all = append(all, s)
		}
	}
	if len(all) > 0 {
		all[f.Target%len(all)].early = &f
	}
}

// declines ends the site before it joins, and tells the server so if the node does.
func declines(s *site) {
	f := ending.Misconfigured(fmt.Errorf("site %d: %w", s.rank, errNoPlugin))
	s.w.hit(*s.early, fmt.Sprintf("site %d", s.rank), true)
	s.w.hits[len(s.w.hits)-1].early = true
	s.end.Close()
	s.left, s.done = true, true
	s.over(f)
	s.gone()
	if !f.Declines(ending.FailedSite{Head: true, Spawned: s.w.spawned != nil}) {
		return
	}
	client, err := startup.NewClient(startup.ClientConfig{Rank: s.rank, Auth: s.w.cfg.Auth, Limit: declineTime, Decline: f})
	if err != nil {
		s.w.wrong = err
		return
	}
	s.client = client
	dialServer(s, func(b []byte) {
		over := client.Receive(b, s.w.time()) != nil // the error is f itself
		s.say()
		if over {
			s.conn.finish()
		}
	}, func(error) {})
	client.Start(s.w.time())
	s.say()
}

// declined checks that a job which a site does not join ends soon, and by the reason of that site,
// if nothing else went wrong.
func declined(w *Simulation) error {
	if len(w.hits) != 1 || !w.hits[0].early || w.stalled {
		return nil
	}
	if w.server.err == nil || !strings.Contains(w.server.err.Error(), errNoPlugin.Error()) {
		return fmt.Errorf("%w: %s does not join, and the server ended with: %w", ErrWrongCause, w.hits[0].What, w.server.err)
	}
	return nil
}
