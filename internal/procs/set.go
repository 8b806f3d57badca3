package procs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// Settings define what procs a site has and what they are given.
type Settings struct {
	Routes  *routes.Table                  // has the job's file and the site; its World is read from SetRanks on
	World   string                         // spawned world of the procs; empty: they were not spawned
	Program func(local int) config.Program // that a proc runs, by its number at the site

	// BoundBefore is the number of procs of other sites on this machine that get cores before
	// these, Bound the number of procs of all sites that do. 0: the site is the only one.
	BoundBefore, Bound int

	Stdin          *os.File                 // of the node; nil: none
	Input          func() (*os.File, error) // instead of Stdin, from another machine; nil: Stdin
	Stdout, Stderr *launch.Output
	Launcher       *launch.Launcher
	Joined         []Joined        // the procs, where a process manager has started them; nil: Start does
	KillNow        <-chan struct{} // once closed, procs that are to end are killed at once
	Log            hclog.Logger
	End            *lifetime.Lifetime // gets how procs end too early
	Events         Events
	Losses         Losses // nil: the job ends with its first lost proc

	// MayDoWithout says that there is no other site, so that the procs may run a program without
	// MPI.
	MayDoWithout bool
}

// Events receives what the rest of the node needs to know of procs. Each proc calls it from
// goroutines of its own.
type Events interface {
	// HandleMessage handles messages of a proc in MPI that are not handled here. It returns false for
	// unknown ones.
	HandleMessage(p *Proc, m wireup.Message) bool
	// LeftMPI is called once for a proc that was in MPI and is not any more, in order or not.
	LeftMPI(p *Proc, inOrder bool)
}

// Losses handles procs that are lost in a job that continues without them. Each proc calls it from
// goroutines of its own.
type Losses interface {
	// Lost is called for a proc that has ended in MPI. f is nil if it has ended in order.
	Lost(p *Proc, f *ending.Failure)
	// Unlinked is called for a link between p and peer that has broken. It calls report if neither
	// is lost.
	Unlinked(p *Proc, peer wire.WorldRank, report func())
}

// Set is the procs of a site that run on this machine, from before their start to their ends.
type Set struct {
	Settings
	greeted chan *Proc
	without without
	cores   []unix.CPUSet          // that the procs are bound to; nil: none
	adopter *launch.ProcessWatcher // of the procs that have joined; nil: none has

	mu  sync.Mutex
	all []*Proc // appended to by Start alone
}

// New returns the set of a site's procs, before the start of any.
func New(s Settings) *Set {
	return &Set{Settings: s, greeted: make(chan *Proc, s.Routes.Site.Procs()), without: without{all: make(chan struct{})}}
}

// NewWithoutProcesses returns a set for tests: it has n procs of the site's first host, without
// processes.
func NewWithoutProcesses(s Settings, n int, state ending.ProcState) *Set {
	set := New(s)
	for i := range n {
		p := &Proc{set: set, Local: i, host: s.Routes.Site.Hosts[0]}
		p.rank.Store(int32(routes.NoRank))
		p.state.Store(int32(state))
		set.all = append(set.all, p)
	}
	return set
}

// Start starts all procs of the set, or adopts those that have joined. The error names the first
// one that could not be started; those before it run.
func (s *Set) Start() error {
	site := s.Routes.Site
	if s.Joined != nil {
		var err error
		if s.adopter, err = launch.NewProcessWatcher(); err != nil {
			return err
		}
	}
	s.takeCores(launch.Cores)
	first := ofNode.reserve(site.Procs())
	for i := range site.Hosts {
		for range site.Hosts[i].Procs {
			p, err := s.one(i, first+int64(len(s.all)))
			if err != nil {
				local := s.Routes.ProcsBefore + len(s.all)
				f := ending.NodeFailed(fmt.Errorf("site %s: proc %d of site %[1]s: %[3]w", site.Name, local, err))
				f.Proc = local + 1
				return f
			}
			s.mu.Lock()
			s.all = append(s.all, p)
			s.mu.Unlock()
		}
	}
	s.Log.Debug("procs started", "procs", len(s.all), "program", site.Program.Path)
	return nil
}

// one starts the next proc, or adopts the next one that has joined.
func (s *Set) one(host int, number int64) (*Proc, error) {
	p := &Proc{
		set: s, Host: host, host: s.Routes.Site.Hosts[host], Local: s.Routes.ProcsBefore + len(s.all), number: number,
		drained: make(chan struct{}), endHandled: make(chan struct{}),
	}
	p.rank.Store(int32(routes.NoRank))
	from := s.start
	if s.Joined != nil {
		from = s.adopt
	}
	if err := from(p); err != nil {
		return nil, err
	}
	go p.listen()
	go p.watch()
	return p, nil
}

func (s *Set) start(p *Proc) error {
	control, theirs, err := wireup.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	spec := s.spec(p)
	spec.Files = []*os.File{theirs}
	closeFiles, err := s.intoFiles(&spec, p.Local)
	if err != nil {
		return errors.Join(err, control.Close())
	}
	defer closeFiles()
	if spec.Stdin, err = s.stdinOf(p.Local); err != nil {
		return errors.Join(err, control.Close())
	}
	p.control = control
	p.os, err = s.Launcher.Start(spec)
	if spec.Stdin != nil && spec.Stdin != s.Stdin {
		_ = spec.Stdin.Close() // the proc has its own copy
	}
	if err != nil {
		return errors.Join(err, control.Close())
	}
	return nil
}

// spec says how to start p. The files are not in it yet.
func (s *Set) spec(p *Proc) launch.Spec {
	program := s.Program(p.Local)
	var prefix func() string
	if program.PrefixOutput {
		prefix = p.prefix
	}
	return launch.Spec{
		Path: program.Path, Args: program.Command, Dir: program.Dir, CPUs: s.cpus(p.Local),
		Env:    procEnv(os.Environ(), keyVariables(s.Routes.Job), program.Env, s.Routes.Site.Name, p.Local, s.procs()),
		Stdout: s.Stdout.Stream(prefix), Stderr: s.Stderr.Stream(prefix),
	}
}

// stdinOf returns the standard input of a proc: the node's for the one that the
// site's file names by world rank, as far as that is known before startup.
func (s *Set) stdinOf(local int) (*os.File, error) {
	first, ok := s.firstRank()
	if !ok || first+local != s.Routes.Site.Program.Stdin {
		return nil, nil
	}
	if s.Input != nil {
		return s.Input()
	}
	return launch.Stdin(s.Stdin)
}

// firstRank is the world rank of the site's first proc, if the file says how
// many procs the sites before it have.
func (s *Set) firstRank() (first int, ok bool) {
	known := 0
	for _, x := range s.Routes.Job.Sites {
		if x.Client < s.Routes.Site.Client {
			known++
			first += x.Procs()
			if len(x.Hosts) == 0 || !x.CountsKnown() { // its count is a scheduler's or its machines', or it is foreign
				return 0, false
			}
		}
	}
	return first, known == s.Routes.Site.Client
}

// procs returns how many procs the job has, or 0 if its file does not say.
func (s *Set) procs() (n int) {
	for _, x := range s.Routes.Job.Sites {
		if len(x.Hosts) == 0 || !x.CountsKnown() { // as in firstRank
			return 0
		}
		n += x.Procs()
	}
	return n
}

// All returns the procs that were started, by their numbers at the site.
func (s *Set) All() []*Proc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[:len(s.all):len(s.all)]
}

// OfHost returns the procs of the host with that index in the site's file. The caller owns the
// slice.
func (s *Set) OfHost(host int) []*Proc {
	return slices.DeleteFunc(slices.Clone(s.All()), func(p *Proc) bool { return p.Host != host })
}

// SetRanks sets the ranks of the procs, once the Routes have the World.
func (s *Set) SetRanks() {
	first := routes.FirstProc(s.Routes)
	for i, p := range s.all {
		p.rank.Store(int32(first) + int32(i))
	}
}

// OfRank returns the proc of a rank, or nil if it is not of this site.
func (s *Set) OfRank(r wire.WorldRank) *Proc {
	i := int(r - routes.FirstProc(s.Routes))
	if i < 0 || i >= len(s.all) {
		return nil
	}
	return s.all[i]
}

// NameOf returns the name of a proc of the job, at any site.
func (s *Set) NameOf(r wire.WorldRank) string {
	if p := s.OfRank(r); p != nil {
		return p.ID().String()
	}
	return fmt.Sprintf("rank %d of %s", r, s.Routes.ClientName(s.Routes.World.Procs.At(r).Client))
}

// Greeted returns a channel with each proc once, when it is in Init.
func (s *Set) Greeted() <-chan *Proc { return s.greeted }

// Missing returns the names of the procs that are not in Init yet; first is the number of the first
// of them at the site, -1 for none.
func (s *Set) Missing() (who string, first int) {
	first = -1
	others := -1
	for i, p := range s.all {
		if p.State() != ending.Starting {
			continue
		}
		if others++; first < 0 {
			first = i
		}
	}
	if first < 0 {
		return "", first
	}
	who = fmt.Sprintf("MPI Init of %v", s.all[first].ID())
	switch others {
	case 0:
		return who, first
	case 1:
		return who + " and another one", first
	}
	return fmt.Sprintf("%s and %d others", who, others), first
}

// Finishing reports whether some proc has passed Finalize.
func (s *Set) Finishing() bool {
	return slices.ContainsFunc(s.All(), func(p *Proc) bool { return p.State() == ending.Finished })
}

// Signal sends a signal to all procs. Failures are only logged.
func (s *Set) Signal(sig syscall.Signal) {
	for _, p := range s.All() {
		if err := p.os.Signal(sig); err != nil {
			s.Log.Warn("cannot signal", "proc", p.ID(), "error", err)
		}
	}
}

// Time that procs have to act on KindDown before they get a signal. Procs that a process manager
// has started report to it, and end with the job's status by themselves.
const (
	downTime    = 500 * time.Millisecond
	managedTime = 5 * time.Second
)

func (s *Set) downTime() time.Duration {
	if s.Joined != nil {
		return min(managedTime, routes.CurrentLimits(s.Routes).Stop/2)
	}
	return min(downTime, routes.CurrentLimits(s.Routes).Stop)
}

// AnnounceEnd sends all procs the end of the job with its exit status, and gives them a moment to
// react. A proc that does not read is left to Stop.
func (s *Set) AnnounceEnd(reason string, status int) {
	for _, p := range s.all {
		go func() { _ = p.Send(wireup.Message{Kind: wireup.KindDown, Reason: reason, Code: status}) }()
	}
	s.gone(s.downTime())
}

// Stop ends the remaining procs, by SIGTERM and then by SIGKILL. When it returns all have ended and
// their output is written.
func (s *Set) Stop() {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, routes.CurrentLimits(s.Routes).Stop - s.downTime()}, {syscall.SIGKILL, time.Hour}} {
		if s.gone(0) {
			break
		}
		s.Signal(step.signal)
		s.gone(step.wait)
	}
	for _, p := range s.all {
		<-p.endHandled
		<-p.os.Done()
	}
	if s.adopter != nil {
		s.adopter.Close()
	}
}

// gone waits for the end of all procs, for at most limit or until KillNow is closed. It returns
// true if all have ended.
func (s *Set) gone(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	for _, p := range s.all {
		select {
		case <-p.os.Exited():
			continue
		default:
		}
		select {
		case <-p.os.Exited():
		case <-t.C:
			return false
		case <-s.KillNow:
			return false
		}
	}
	return true
}
