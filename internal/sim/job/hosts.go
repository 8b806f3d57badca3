package job

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/cluster"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/tree"
	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	fan = 2 // children of a host; fewer than with nodes, as simulated sites are small

	silenceLimit = 10 * time.Second // after which no host may go on without another one, as a job file has it
	askLimit     = time.Minute      // maximum time until a question is answered, as in internal/cluster
)

// siteHosts are the hosts of an own site that has several, each on its own machine. Host 0 is the
// head, and its node is the site's client. machines is the owner of their tree.
type siteHosts struct {
	s        *site
	tree     *tree.Tree
	shape    membership.Tree
	config   startup.ClientConfig // the site's config, without its hosts
	finished bool                 // all hosts have finished

	counts  *membership.Counts // counts of procs
	counted []func()           // answers that wait for the counts
}

func (s *site) newMachines(config startup.ClientConfig) error {
	w := s.w
	m := &siteHosts{s: s, config: config, counts: membership.NewCounts(len(s.hosts), startup.MaxProcs), shape: membership.Tree{Hosts: len(s.hosts), Fan: fan}}
	if w.cfg.Survive { // a host that lives below a lost one is lost with it, and may take others for lost that have given it up
		m.shape.Fan = membership.DefaultFan
	}
	beat, silence := membership.SignsOfLife(silenceLimit)
	var err error
	m.tree, err = tree.New(tree.Config{
		Kernel: w.k, Shape: m.shape, Beat: beat, Silence: silence,
		Limit: membership.Patience(w.cfg.Limit), Late: max(s.cfg.Late, time.Millisecond), Time: w.time, Link: m.link, Owner: m,
	})
	s.machines = m
	return err
}

func (m *siteHosts) link(from, to int) *kernel.Link {
	spec := m.s.w.cfg.Links.Channel
	spec.Name = fmt.Sprintf("machine %d of site %d to machine %d", from, m.s.rank, to)
	x := &observedLink{tree: true}
	x.l = m.s.w.k.NewLink(spec, nil)
	x.shown = x.l
	m.s.w.openLinks = append(m.s.w.openLinks, x)
	return x.l
}

// Joined makes a host ask the head how many procs all hosts have, again until the head knows it,
// and then submit its part.
func (m *siteHosts) Joined(host int) {
	question := membership.Count{Host: host, Procs: m.s.cfg.Hosts[host]}.Question()
	m.tree.Ask(host, 0, question, askLimit, func(answer []byte, err error) {
		var all []int
		if err == nil {
			all, err = membership.ReadCounts(answer, len(m.s.hosts))
		}
		switch {
		case err != nil: // the loss of the head is noticed elsewhere
			m.s.w.k.Tracef("machine %d of site %d does not hear of the others: %v", host, m.s.rank, err)
		case len(all) == 0:
			m.Joined(host)
		default:
			m.submit(host, all)
		}
	})
}

func (m *siteHosts) submit(host int, all []int) {
	if w := m.s.w; !slices.Equal(all, m.s.cfg.Hosts) && w.wrong == nil {
		w.wrong = fmt.Errorf("%w: machine %d of site %d hears that the machines have %v procs", ErrDisorder, host, m.s.rank, all)
	}
	b, err := cluster.EncodePart(m.config.Hosts[host])
	if err != nil {
		m.s.fail(ending.NodeFailed(err))
	}
	if m.s.hosts[host].idle {
		b = nil
	}
	m.tree.Submit(host, b)
}

// askRandom makes a host ask a random other one, as nodes do for spawning and impi-node links, and
// checks that the answer is to this question.
func (m *siteHosts) askRandom(host int) {
	w := m.s.w
	other := w.k.Rand().IntN(len(m.s.hosts))
	question := fmt.Appendf(nil, "machine %d asks machine %d", host, other)
	m.tree.Ask(host, other, question, askLimit, func(answer []byte, err error) {
		if want := replyTo(question, other); err == nil && !bytes.Equal(answer, want) && w.wrong == nil {
			w.wrong = fmt.Errorf("%w: of site %d, %s, and hears: %q", ErrDisorder, m.s.rank, question, answer)
		}
	})
}

func replyTo(question []byte, host int) []byte {
	return fmt.Appendf(nil, "%s, says machine %d", question, host)
}

// Asked answers the questions of askRandom. The head also answers how many procs all hosts have,
// once that is known.
func (m *siteHosts) Asked(host int, question []byte, answer func([]byte)) {
	if question[0] != '{' {
		answer(replyTo(question, host))
		return
	}
	if err := m.counts.Add(question); err != nil {
		answer([]byte(err.Error()))
		return
	}
	told := false
	tell := func() {
		if !told {
			told = true
			answer(m.counts.Answer())
		}
	}
	m.counted = append(m.counted, tell)
	if m.counts.Complete() {
		for _, tell := range m.counted {
			tell()
		}
		return
	}
	now := m.s.w.time()
	m.s.w.k.After(m.counts.Until(now).Sub(now), tell)
}

// Gathered joins the server with the parts of all hosts.
func (m *siteHosts) Gathered(parts [][]byte) {
	var without []bool
	for _, b := range parts {
		without = append(without, len(b) == 0)
	}
	if done, f := ending.WithoutMPI(siteName(int(m.s.rank)), without, func(hosts []int) string { return fmt.Sprint("machines ", hosts) }); done || f != nil {
		if f == nil { // a fault makes one of several machines idle, not all
			f = ending.NodeFailed(fmt.Errorf("%w: no machine of site %d is in MPI", ErrDisorder, m.s.rank))
		}
		m.s.fail(f)
		return
	}
	c := m.config
	c.Hosts = nil
	for i, b := range parts {
		h, err := cluster.DecodePart(b, m.s.cfg.Hosts[i])
		if err != nil {
			m.s.fail(ending.NodeFailed(err))
			return
		}
		c.Hosts = append(c.Hosts, h)
	}
	x, err := startup.NewClient(c)
	if err != nil {
		m.s.fail(ending.NodeFailed(err))
		return
	}
	m.s.client = x
	m.s.connect()
}

func (s *site) handOut() {
	if s.machines == nil {
		for _, h := range s.hosts {
			h.begin()
		}
		return
	}
	b, err := cluster.EncodeJob(s.job, [startup.TokenSize]byte{})
	if err != nil {
		s.fail(ending.NodeFailed(err))
		return
	}
	s.machines.tree.Start(b)
	s.hosts[0].begin()
}

// Started begins the dance of a host.
func (m *siteHosts) Started(host int, b []byte) {
	s := m.s
	if s.left || s.dead {
		return
	}
	job, _, err := cluster.DecodeJob(b)
	if err == nil && !reflect.DeepEqual(job, s.job) {
		err = fmt.Errorf("machine %d of site %d was handed another job than the head has", host, s.rank)
	}
	if err != nil && s.w.wrong == nil {
		s.w.wrong = fmt.Errorf("%w: %w", ErrDisorder, err)
	}
	s.hosts[host].begin()
	m.askRandom(host)
}

// finishing makes hosts say that they have finished, and reports whether all have.
func (m *siteHosts) finishing() bool {
	for _, h := range m.s.hosts {
		if !h.said && !h.gone && h.over && !slices.ContainsFunc(m.s.procs, func(p *proc) bool { return p.h == h && !p.judged }) {
			h.said = true
			m.tree.Finish(h.number)
		}
	}
	return m.finished
}

// Finished lets the site leave.
func (m *siteHosts) Finished() {
	m.finished = true
	m.s.finish()
}

// end tells the hosts that the job is over, and ends the head.
func (m *siteHosts) end(f *ending.Failure) {
	text := ""
	if f != nil {
		text = f.Text
	}
	if noticeOf(m.s.hosts[0], f).Site {
		m.tree.End(text)
	}
	if f == nil {
		m.s.w.k.After(time.Second, m.crash)
		return
	}
	m.close(0, f)
}

func (m *siteHosts) crash() {
	for i := range m.s.hosts {
		m.tree.Crash(i)
	}
}

// Fails makes the site fail with what another host reports.
func (m *siteHosts) Fails(_ int, report string) { m.s.fail(lostHost(report)) }

func lostHost(text string) *ending.Failure {
	return &ending.Failure{Text: text, Status: ending.StatusNode, Precedence: ending.Died}
}

// JobEnded ends the procs of a host when the job has failed.
func (m *siteHosts) JobEnded(i int, report string) {
	if report != "" {
		m.close(i, &ending.Failure{Text: report, Reported: true})
	}
}

func (m *siteHosts) close(i int, f *ending.Failure) {
	h := m.s.hosts[i]
	m.s.w.k.After(m.s.w.k.Between(0, time.Millisecond), func() {
		if !h.gone {
			tellPeers(h, f, noticeOf(h, f), func() { h.down((*host).close) })
		}
	})
}

// Lost ends a host that has lost its parent or a child. As in nodes, the head learns of it unless
// something else explains it in time.
func (m *siteHosts) Lost(at, who int, why error) {
	text := fmt.Sprintf("machine %d of site %d is lost: %v", who, m.s.rank, why)
	h := m.s.hosts[at]
	switch {
	case h.survival.on: // the others may go on, and hear that it ends
		h.why = text
		h.survival.loseHosts([]int{at}, lostHost(text))
		endSoon(h, lostHost(text))
		return
	case at == 0:
		m.s.fail(lostHost(text))
		return
	case who < at:
		h.why = text
	}
	m.s.w.k.After(ending.Died.HoldTime(), func() {
		if !h.gone {
			m.tell(h, lostHost(text))
		}
	})
}

// LostBelow has the job go on without hosts.
func (m *siteHosts) LostBelow(at int, hosts []int, why error) {
	m.s.hosts[at].survival.loseHosts(hosts, lostHost(fmt.Sprintf("machine %d of site %d is lost: %v", hosts[0], m.s.rank, why)))
}

// Missing makes the site fail.
func (m *siteHosts) Missing(hosts []int, _ error) { m.s.fail(lostHost(missing(m.s, hosts))) }

func missing(s *site, hosts []int) string {
	return fmt.Sprintf("machines %v of site %d are missing", hosts, s.rank)
}

// Misplaced makes the site fail, which no fault of a case does in this way.
func (m *siteHosts) Misplaced(at, child int) {
	m.s.fail(lostHost(fmt.Sprintf("machine %d of site %d was sent to machine %d", child, m.s.rank, at)))
}

// ParentNotFound ends a host that has not found its parent.
func (m *siteHosts) ParentNotFound(i int) { m.s.hosts[i].down((*host).close) }

// endSoon ends one of several hosts soon, which is not the head.
func endSoon(h *host, f *ending.Failure) {
	k := h.s.w.k
	k.After(k.Between(0, time.Millisecond), func() {
		if !h.gone {
			h.s.machines.tell(h, f)
		}
	})
}

// tell ends a host after it has told others by which failure.
func (m *siteHosts) tell(h *host, f *ending.Failure) {
	notice := noticeOf(h, f)
	if notice.Site {
		m.tree.Fail(h.number, f.Text)
	}
	tellPeers(h, f, notice, func() { h.down((*host).close) })
}

// down ends one of several hosts; by ends its procs, its switch and its connections.
func (h *host) down(by func(*host)) {
	s := h.s
	if h.gone || s.done {
		return
	}
	h.gone = true
	by(h)
	s.machines.tree.Leave(h.number) // unless it has left in another way
	for _, x := range s.hosts {
		if !x.gone {
			return
		}
	}
	s.left = true
	s.shutDown()
}

// lose is the loss of a machine: silent, or noticed by the systems at the other ends of its
// connections.
func lose(w *Simulation, f Fault) {
	var all []*host
	for _, s := range w.sites {
		if s.machines != nil {
			all = append(all, s.hosts...)
		}
	}
	if len(all) == 0 {
		return
	}
	h := all[f.Target%len(all)]
	if h.gone || h.s.done || h.s.dead {
		return
	}
	s := h.s
	silent := f.Target/len(all)%2 == 1 && h.number > 0 // the server must notice the loss of the head
	w.hit(f, fmt.Sprintf("machine %d of site %d", h.number, s.rank), !s.left && !h.said && !survives(w))
	if survives(w) {
		s.machines.shape.EachBelow(h.number, func(x int) { s.hosts[x].lost = true })
	}
	w.hits[len(w.hits)-1].lost = h
	w.stalls += silenceLimit + settles(w) + agent.TellTime
	switch {
	case silent:
		s.machines.tree.Vanish(h.number)
		h.down((*host).vanish)
	case h.number > 0:
		s.machines.tree.Crash(h.number)
		h.down((*host).crash)
	default:
		s.machines.tree.Crash(0)
		s.loseHead()
	}
}

// idle has the procs of a machine end well and not call MPI Init: that of one of several hosts of
// an own site.
func idle(w *Simulation, f Fault) {
	var all []*host
	for _, s := range w.sites {
		if s.machines != nil {
			all = append(all, s.hosts...)
		}
	}
	if len(all) == 0 || slices.ContainsFunc(w.hits, func(h FaultHit) bool { return h.Fault.Kind == NoMPI }) {
		return
	}
	h := all[f.Target%len(all)]
	h.idle = true
	w.hit(f, fmt.Sprintf("machine %d of site %d", h.number, h.s.rank), true)
	w.hits[len(w.hits)-1].idle = h
}

// idleBlamed checks that a site one of whose machines has no procs in MPI says so, if nothing else
// went wrong in the job.
func idleBlamed(w *Simulation) error {
	if len(w.hits) != 1 || w.hits[0].idle == nil || w.stalled {
		return nil
	}
	h := w.hits[0].idle
	want := fmt.Sprintf("site s%d: the procs of machines [%d] exited", h.s.rank, h.number)
	if h.s.err == nil || !strings.Contains(h.s.err.Error(), want) {
		return fmt.Errorf("%w: the procs of %s are not in MPI, and its site ended with: %w", ErrWrongCause, w.hits[0].What, h.s.err)
	}
	return nil
}

// spreads is how long news takes at most from any host to the head and on to all others.
func spreads(w *Simulation) (d time.Duration) {
	for _, s := range w.sites {
		if s.machines != nil {
			d = max(d, time.Duration(2*len(s.hosts))*(hop(&w.cfg.Links.Channel, textLimit)+time.Millisecond))
		}
	}
	return d
}

// settles is how long machines wait, one after the other, for an explanation of the loss of the one
// above.
func settles(w *Simulation) time.Duration {
	return time.Duration(len(w.hosts)) * ending.Died.HoldTime()
}

func (s *site) loseHead() {
	s.timer.Stop()
	if s.conn != nil {
		s.conn.close()
	}
	if !s.left {
		s.end.Fail(s.w.time(), ending.NodeFailed(errors.New("its head has crashed")))
	}
	s.dead, s.left, s.spared = true, true, survives(s.w)
	if serves(s) {
		s.w.server.crash()
	}
	s.hosts[0].down((*host).crash)
}

// crash is the sudden end of a machine with its procs. The systems of others notice it.
func (h *host) crash() {
	h.close()
	h.died()
}

func (h *host) died() {
	if h.s.job != nil {
		h.s.w.crashed(Endpoint{AtAgent, int(h.rank)})
	}
}

// vanish is the sudden end of a machine without any sign to others.
func (h *host) vanish() {
	h.silent = true
	var ends []*kernel.End
	if h.sw != nil {
		h.sw.task.Kill()
		ends = append(ends, h.sw.ends...)
	}
	ends = append(append(ends, h.conns...), h.onDemand...)
	for _, x := range h.backlog {
		ends = append(ends, x.e)
	}
	for _, p := range h.s.procs {
		if p.h == h {
			p.task.Kill()
			ends = append(append(ends, p.agent), p.ends...)
			h.s.w.cfg.Worlds.gone(p)
		}
	}
	for _, e := range ends {
		e.OnReady(nil)
		hush(h, e)
	}
	h.died()
}

// hush has nothing be heard any more of an end of a link. In a job that goes on without the host,
// those at the other ends find that out after some time.
func hush(h *host, e *kernel.End) {
	e.Link().Stall(kernel.Forever)
	if h.survival.on {
		_, silence := membership.SignsOfLife(silenceLimit)
		h.s.w.k.After(silence, func() { e.Link().Cut(&link.SilentError{For: silence}) })
	}
}

// namesLost checks that a site that has lost a host names it, if nothing else went wrong in the
// job.
func namesLost(w *Simulation) error {
	if len(w.hits) != 1 || w.hits[0].lost == nil || !w.hits[0].Deadly || w.cfg.Worlds != nil || w.stalled {
		return nil
	}
	h := w.hits[0].lost
	s := h.s
	if h.number == 0 {
		return s.blamesHead()
	}
	var all []int
	s.machines.shape.EachBelow(h.number, func(x int) { all = append(all, x) })
	slices.Sort(all)
	names := append(channelNames(h), w.hits[0].What+" is lost", missing(s, all))
	if s.err == nil || !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(s.err.Error(), name) }) {
		return fmt.Errorf("%w: %s was lost, and its site ended with: %w", ErrWrongCause, w.hits[0].What, s.err)
	}
	return nil
}

// channelNames are how a host is named by one that has lost its channel, or has not reached it.
// Another site may say so to the server before the host's own site has heard of the loss.
func channelNames(h *host) []string {
	return []string{fmt.Sprintf("host %d is lost", h.rank), fmt.Sprintf("host %d at %v", h.rank, address(h.s.rank, h.number).Addr()), fmt.Sprintf("host %d was not reached", h.rank)}
}

// blamesHead checks that the hosts that were connected with the head know that it is lost.
func (s *site) blamesHead() error {
	for _, h := range s.hosts[1:] {
		if h.why != "" && (h.number-1)/fan == 0 && !strings.Contains(h.why, "machine 0 of") {
			return fmt.Errorf("%w: the head of site %d was lost, and machine %d says: %s", ErrWrongCause, s.rank, h.number, h.why)
		}
	}
	return nil
}
