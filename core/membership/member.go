package membership

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of a Member's inputs, and of the steps Lost and Missing.
var (
	// ErrUnknownHost: a connection of a host that is not a child of this host.
	ErrUnknownHost = errors.New("it is not one of the hosts that connect here")
	// ErrTwice: a second connection of a host that is connected.
	ErrTwice = errors.New("this host has joined already")
	// ErrPart: a report contains hosts that are not below its sender, or one twice.
	ErrPart = errors.New("a report about hosts that are not below its sender")
	// ErrSilent: no message came from a host for too long.
	ErrSilent = errors.New("nothing was heard of it")
	// ErrMissing: hosts have not come in time.
	ErrMissing = errors.New("hosts are missing")
)

// Config configures a Member.
type Config struct {
	Tree
	Self     int
	Beat     time.Duration // time between two signs of life
	Silence  time.Duration // a host from which nothing came for this time is lost
	Deadline time.Time     // when the site must be complete; used by the head only
}

// Part is what one host submits to the whole site before the job begins. The Member does not
// interpret it.
type Part struct {
	Host int
	Data []byte
}

// Kind is the kind of a Step.
type Kind uint8

// The kinds of steps.
const (
	// Report: send Parts to the parent: this host and all below it have submitted theirs.
	Report Kind = iota
	// Complete: at the head, the site is complete; Parts are those of all hosts, in the order of the
	// hosts.
	Complete
	// Wait: report to the parent that Hosts are missing. At the head, report it to the operator.
	Wait
	// Beat: send a sign of life to Hosts, which are the parent or children.
	Beat
	// Finished: report to the parent that this host and all below it have finished. At the head:
	// all hosts have finished.
	Finished
	// Lost: Hosts[0], the parent or a child, is lost, for the reason Err. The site cannot continue.
	Lost
	// Missing: at the head, Hosts have not come in time.
	Missing
	// LostBelow: Hosts, a child and all below it, are lost, for the reason Err, and the site
	// continues without them: see SurviveLosses.
	LostBelow
)

// Step is an action for the owner of a Member.
type Step struct {
	Kind  Kind
	Hosts []int
	Parts []Part
	Err   error
}

type neighbour struct {
	there    bool
	heard    time.Time // when the last message came
	parts    []Part    // of this neighbour and the hosts below it; nil: not submitted yet
	missing  []int     // hosts below it that it last reported as missing
	finished bool
	left     bool // it has finished, and may close its connection
}

// Member is one host's view of its site.
type Member struct {
	cfg        Config
	neighbours map[int]*neighbour
	own        []byte
	ready      bool // this host's own part was submitted
	reported   bool // all hosts below have joined, which was reported to the parent or the owner
	finished   bool
	told       bool // it was reported that this host and all below it have finished
	over       bool // the job is over: no host is reported as lost or missing any more
	survives   bool // the site continues without lost children
	said       []int
	beat       time.Time // when the next sign of life is due
	now        time.Time
	steps      []Step
}

// New makes the Member of a host.
func New(cfg Config, now time.Time) (*Member, error) {
	if cfg.Fan < 1 || cfg.Self < 0 || cfg.Self >= cfg.Hosts || cfg.Beat <= 0 || cfg.Silence <= cfg.Beat {
		return nil, fmt.Errorf("membership: host %d of %d, fan %d, beat %v, silence %v: these do not go together", cfg.Self, cfg.Hosts, cfg.Fan, cfg.Beat, cfg.Silence)
	}
	m := &Member{cfg: cfg, neighbours: make(map[int]*neighbour), now: now, beat: now.Add(cfg.Beat)}
	if p := cfg.Parent(cfg.Self); p >= 0 {
		m.neighbours[p] = &neighbour{}
	}
	first, end := cfg.Children(cfg.Self)
	for c := first; c < end; c++ {
		m.neighbours[c] = &neighbour{}
		m.cfg.EachBelow(c, func(h int) { m.neighbours[c].missing = append(m.neighbours[c].missing, h) })
		slices.Sort(m.neighbours[c].missing)
	}
	if cfg.Self != 0 { // the parent assumes this; the head's owner does not
		m.said = m.Missing()
	}
	return m, nil
}

// Next returns the next step that it has not returned yet; ok is false if there is none.
func (m *Member) Next() (s Step, ok bool) {
	if len(m.steps) == 0 {
		return s, false
	}
	s, m.steps = m.steps[0], m.steps[1:]
	return s, true
}

// Join records that the parent has accepted this host.
func (m *Member) Join(now time.Time) {
	if n := m.neighbours[m.cfg.Parent(m.cfg.Self)]; n != nil && !n.left {
		n.there = true
		m.hear(n, now)
	}
}

// Attach records that a child has connected.
func (m *Member) Attach(child int, now time.Time) error {
	n, err := m.child(child)
	switch {
	case err != nil:
		return err
	case n.there || n.left:
		return fmt.Errorf("host %d: %w", child, ErrTwice)
	}
	n.there = true
	m.hear(n, now)
	n.missing = slices.DeleteFunc(n.missing, func(h int) bool { return h == child })
	m.wait()
	return nil
}

// HeardFrom records a sign of life from the parent or a child: any message.
func (m *Member) HeardFrom(from int, now time.Time) {
	if n := m.neighbours[from]; n != nil {
		m.hear(n, now)
	}
}

func (m *Member) hear(n *neighbour, now time.Time) { n.heard, m.now = now, now }

// Submit sets this host's Part. It is called once.
func (m *Member) Submit(data []byte, now time.Time) {
	m.own, m.ready, m.now = data, true, now
	m.gather()
}

// AddParts handles the report of a child: the Parts of the child and of all hosts below it.
func (m *Member) AddParts(child int, parts []Part, now time.Time) error {
	n, err := m.child(child)
	if err != nil {
		return err
	}
	want := make(map[int]bool)
	m.cfg.EachBelow(child, func(h int) { want[h] = true })
	if !n.there || n.parts != nil || len(parts) != len(want) {
		return fmt.Errorf("host %d: %w", child, ErrPart)
	}
	for _, p := range parts {
		if !want[p.Host] {
			return fmt.Errorf("host %d, about host %d: %w", child, p.Host, ErrPart)
		}
		delete(want, p.Host)
	}
	m.hear(n, now)
	n.parts, n.missing = parts, nil
	m.gather()
	return nil
}

// ReportMissing handles the list of hosts below a child that the child still waits for.
func (m *Member) ReportMissing(child int, hosts []int, now time.Time) error {
	n, err := m.child(child)
	if err != nil {
		return err
	}
	for i, h := range hosts {
		if m.cfg.ChildToward(m.cfg.Self, h) != child || i > 0 && hosts[i-1] >= h {
			return fmt.Errorf("host %d, about host %d: %w", child, h, ErrPart)
		}
	}
	m.hear(n, now)
	if n.parts == nil {
		n.missing = hosts
		m.wait()
	}
	return nil
}

// CheckSender checks a message for the head that a child sends for itself or passes on for a host
// below it, and counts it as a sign of life.
func (m *Member) CheckSender(child, host int, now time.Time) error {
	n, err := m.child(child)
	if err != nil {
		return err
	}
	m.hear(n, now)
	if m.cfg.ChildToward(m.cfg.Self, host) != child {
		return fmt.Errorf("host %d, about host %d: %w", child, host, ErrPart)
	}
	return nil
}

// Finish records that this host has finished its share of the job.
func (m *Member) Finish(now time.Time) {
	m.finished, m.now = true, now
	m.finish()
}

// ChildFinished records that a child, and all hosts below it, have finished.
func (m *Member) ChildFinished(child int, now time.Time) error {
	n, err := m.child(child)
	if err != nil {
		return err
	}
	m.hear(n, now)
	n.finished = true
	m.finish()
	return nil
}

// SurviveLosses sets that from now on the site continues without children that are lost, and does
// not wait for them to finish. The hosts below them are lost with them, as they lose their parent.
func (m *Member) SurviveLosses() { m.survives = true }

// End records that the job is over, for whatever reason: from then on no host is reported as lost
// or missing.
func (m *Member) End() {
	m.over = true
	m.steps = slices.DeleteFunc(m.steps, func(s Step) bool { return s.Kind == Lost || s.Kind == Missing || s.Kind == LostBelow })
}

// Disconnected records that the connection to the parent or a child has ended, and why.
func (m *Member) Disconnected(who int, why error, now time.Time) {
	m.now = now
	if n := m.neighbours[who]; n != nil && n.there {
		m.lose(who, n, why)
	}
}

// Tick handles the passing of time: signs of life that are due, and silent or missing
// hosts.
func (m *Member) Tick(now time.Time) {
	m.now = now
	if !now.Before(m.beat) {
		m.beat = now.Add(m.cfg.Beat)
		if all := m.there(); len(all) > 0 {
			m.steps = append(m.steps, Step{Kind: Beat, Hosts: all})
		}
	}
	for _, who := range m.there() {
		if n := m.neighbours[who]; now.Sub(n.heard) >= m.cfg.Silence {
			m.lose(who, n, fmt.Errorf("%w for %v", ErrSilent, now.Sub(n.heard).Round(time.Millisecond)))
		}
	}
	if m.awaits() && !now.Before(m.cfg.Deadline) {
		m.over = true
		m.steps = append(m.steps, Step{Kind: Missing, Hosts: m.Missing(), Err: ErrMissing})
	}
}

// Deadline returns when Tick must be called next.
func (m *Member) Deadline() time.Time {
	at := m.beat
	for _, who := range m.there() {
		if t := m.neighbours[who].heard.Add(m.cfg.Silence); t.Before(at) {
			at = t
		}
	}
	if m.awaits() && m.cfg.Deadline.Before(at) {
		at = m.cfg.Deadline
	}
	return at
}

// awaits reports whether this is the head and it may still report hosts as missing.
func (m *Member) awaits() bool {
	return m.cfg.Self == 0 && !m.reported && !m.over && len(m.Missing()) > 0
}

func (m *Member) child(host int) (*neighbour, error) {
	n := m.neighbours[host]
	if n == nil || host < m.cfg.Self {
		return nil, fmt.Errorf("host %d: %w", host, ErrUnknownHost)
	}
	return n, nil
}

// there returns the neighbours that are connected, in order.
func (m *Member) there() (list []int) {
	for who, n := range m.neighbours {
		if n.there {
			list = append(list, who)
		}
	}
	slices.Sort(list)
	return list
}

// Missing returns the hosts below this one that have not joined yet, in order.
func (m *Member) Missing() (list []int) {
	for who, n := range m.neighbours {
		if who > m.cfg.Self {
			list = append(list, n.missing...)
		}
	}
	slices.Sort(list)
	return list
}

// wait adds a Wait step if the set of missing hosts has changed.
func (m *Member) wait() {
	if now := m.Missing(); !m.over && !slices.Equal(now, m.said) {
		m.said = now
		m.steps = append(m.steps, Step{Kind: Wait, Hosts: now})
	}
}

// gather adds the Report or Complete step once all hosts are there.
func (m *Member) gather() {
	if m.reported || !m.ready {
		return
	}
	parts := []Part{{m.cfg.Self, m.own}}
	for who, n := range m.neighbours {
		if who < m.cfg.Self {
			continue
		}
		if n.parts == nil {
			m.wait()
			return
		}
		parts = append(parts, n.parts...)
	}
	slices.SortFunc(parts, func(a, b Part) int { return a.Host - b.Host })
	m.reported = true
	for _, n := range m.neighbours {
		n.parts = n.parts[:0:0]
	}
	kind := Report
	if m.cfg.Self == 0 {
		kind = Complete
	}
	m.steps = append(m.steps, Step{Kind: kind, Parts: parts})
}

func (m *Member) finish() {
	if m.told || !m.finished {
		return
	}
	for who, n := range m.neighbours {
		if who > m.cfg.Self && !n.finished {
			return
		}
	}
	m.told = true
	m.steps = append(m.steps, Step{Kind: Finished})
}

// lose adds the Lost step for a neighbour, unless the job is over.
func (m *Member) lose(who int, n *neighbour, why error) {
	n.there, n.left = false, true
	if m.over {
		return
	}
	if m.survives && who > m.cfg.Self {
		n.finished = true
		var hosts []int
		m.cfg.EachBelow(who, func(h int) { hosts = append(hosts, h) })
		slices.Sort(hosts)
		m.steps = append(m.steps, Step{Kind: LostBelow, Hosts: hosts, Err: why})
		m.finish()
		return
	}
	m.over = true
	m.steps = append(m.steps, Step{Kind: Lost, Hosts: []int{who}, Err: why})
}
