package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/wireup"
)

// procPhase is how far a proc's life has got.
type procPhase int32

const (
	starting procPhase = iota // until its hello
	greeted                   // it waits in Init
	welcomed                  // it runs in MPI
	finished                  // it has passed Finalize
)

// controlFD is the descriptor number of a proc's control socket.
const controlFD = 3

// lastWords is how long the control socket of a proc that has exited is read.
// Only a descendant that left its group could keep it open.
const lastWords = time.Second

// proc is one process of the site.
type proc struct {
	n       *node
	host    *ownHost
	local   int // among the site's procs
	index   int // among its host's procs
	os      *launch.Process
	control *wireup.Conn
	rank    atomic.Int32 // noRank until startup is over
	phase   atomic.Int32
	silent  chan struct{} // closed when the control socket has said all
	judged  chan struct{} // closed when its end has been looked at
	inquiry inquiry
	aborted atomic.Bool            // it has called Abort, which was reported
	loss    atomic.Pointer[string] // the first link to another proc that it lost; nil: none
	board   bool                   // its library can use one; known once it is greeted
	cut     bool                   // it has told that its trace is; for who reads control
}

func (p *proc) who() who {
	return who{site: p.n.siteLabel(), rank: wire.WorldRank(p.rank.Load()), local: p.local}
}

// prefix starts each line of the proc's output.
func (p *proc) prefix() string {
	if s := p.n.opt.share; s != nil {
		return s.prefix(p)
	}
	if r := p.rank.Load(); r != int32(noRank) {
		return fmt.Sprintf("[%d] ", r)
	}
	return fmt.Sprintf("[%s.%d] ", p.n.opt.Site.Name, p.local)
}

// startProcs starts all procs of the site.
func (n *node) startProcs() error {
	for _, h := range n.hosts {
		for i := range h.config.Procs {
			p, err := n.startProc(h, i)
			if err != nil {
				f := ending.NodeFailed(fmt.Errorf("site %s: proc %d of site %[1]s: %[3]w", n.opt.Site.Name, len(n.procs), err))
				f.Proc = len(n.procs) + 1
				return f
			}
			n.mu.Lock()
			n.procs = append(n.procs, p)
			n.mu.Unlock()
			h.procs = append(h.procs, p)
		}
	}
	n.log.Debug("procs started", "procs", len(n.procs), "program", n.opt.Site.Program.Path)
	return nil
}

func (n *node) startProc(h *ownHost, index int) (*proc, error) {
	p := &proc{
		n: n, host: h, local: len(n.procs), index: index,
		silent: make(chan struct{}), judged: make(chan struct{}),
	}
	p.rank.Store(int32(noRank))
	control, theirs, err := wireup.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	spec := n.spec(p)
	spec.Files = []*os.File{theirs}
	closeFiles, err := n.intoFiles(&spec, p.local)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer closeFiles()
	if spec.Stdin, err = n.stdinOf(p.local); err != nil {
		return nil, errors.Join(err, control.Close())
	}
	p.control = control
	p.os, err = n.launcher.Start(spec)
	if spec.Stdin != nil && spec.Stdin != n.opt.Stdin {
		_ = spec.Stdin.Close() // the proc has its own copy
	}
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	go p.listen()
	go p.watch()
	return p, nil
}

// spec says how to start p, but for its files.
func (n *node) spec(p *proc) launch.Spec {
	program := n.program(p.local)
	var prefix func() string
	if program.PrefixOutput {
		prefix = p.prefix
	}
	return launch.Spec{
		Path: program.Path, Args: program.Command, Dir: program.Dir,
		Env:    procEnv(os.Environ(), program.Env, n.opt.Site.Name, p.local),
		Stdout: n.stdout.Stream(prefix), Stderr: n.stderr.Stream(prefix),
	}
}

// stdinOf gives the standard input of a proc: the node's for the one that the
// site's file names by world rank, as far as that is known before startup.
func (n *node) stdinOf(local int) (*os.File, error) {
	first, ok := n.firstRank()
	if !ok || first+local != n.opt.Site.Program.Stdin {
		return nil, nil
	}
	return launch.Stdin(n.opt.Stdin)
}

// firstRank is the world rank of the site's first proc, if the file says how
// many procs the sites before it have.
func (n *node) firstRank() (first int, ok bool) {
	known := 0
	for _, s := range n.opt.Job.Sites {
		if s.Client < n.opt.Site.Client {
			known++
			first += s.Procs()
			if s.Foreign {
				return 0, false
			}
		}
	}
	return first, known == n.opt.Site.Client
}

// listen reads what the proc says until its control socket ends.
func (p *proc) listen() {
	defer close(p.silent)
	for {
		m, fds, err := p.control.Recv()
		wireup.CloseAll(fds) // procs send none
		if err != nil {
			if errors.Is(err, wireup.ErrMessage) {
				p.n.end.Fail(ending.NodeFailed(fmt.Errorf("%v: %w", p.who(), err)))
			} else if !errors.Is(err, io.EOF) {
				p.n.log.Debug("control socket", "proc", p.who(), "error", err)
			}
			return
		}
		p.heard(m)
	}
}

func (p *proc) heard(m wireup.Message) {
	phase := procPhase(p.phase.Load())
	switch {
	case m.Kind == wireup.KindAbort:
		f := procAborted(p.who(), m.Code, m.Reason).After(p.lost())
		f.At = time.Now()
		p.aborted.Store(true)
		if phase == finished {
			p.n.late(f) // the job may be over before ending decides
		}
		p.n.end.Fail(f)
	case m.Kind == wireup.KindLost && phase == welcomed:
		p.loses(m)
	case m.Kind == wireup.KindHello && phase == starting:
		if m.Version != wireup.Version {
			p.n.end.Fail(ending.NodeFailed(fmt.Errorf("%v uses %s, whose control protocol has version %d; this node's has %d: build the program and impi-node from one release",
				p.who(), m.Library, m.Version, wireup.Version)))
			return
		}
		p.board = m.Board
		p.phase.Store(int32(greeted))
		p.n.hellos <- p
	case phase == welcomed && p.n.direct.meet.heard(p, m):
	case m.Kind == wireup.KindOpen && phase == welcomed && m.Resumable != nil:
		p.n.direct.reopen(p, m)
	case m.Kind == wireup.KindOpen && phase == welcomed:
		p.n.direct.open(p, m.Peer)
	case m.Kind == wireup.KindStats && phase >= welcomed:
		if !p.inquiry.heard(m.Stats, len(p.n.job.Procs)) {
			p.n.log.Warn("a proc tells more of its links than was asked for", "proc", p.who())
		}
	case m.Kind == wireup.KindTrace && m.Cut != nil && !p.cut:
		p.cut = true
		p.n.traceCut(p, m)
	case m.Kind == wireup.KindFini && phase == welcomed:
		p.phase.Store(int32(finished))
		p.n.direct.meet.gone(p)
		p.host.loop.ProcDone(wire.WorldRank(p.rank.Load()))
	default:
		p.n.log.Warn("a proc said something out of place", "proc", p.who(), "kind", m.Kind)
	}
}

// loses notes that the proc has lost its link to another one.
func (p *proc) loses(m wireup.Message) {
	if int(m.Peer) < 0 || int(m.Peer) >= len(p.n.job.Procs) {
		p.n.log.Warn("a proc lost a link to a rank that is not there", "proc", p.who(), "rank", m.Peer)
		return
	}
	p.n.log.Debug("a proc has lost a link", "proc", p.who(), "peer", m.Peer, "reason", m.Reason)
	loss := "it had lost its link to " + p.n.rankName(m.Peer)
	p.loss.CompareAndSwap(nil, &loss)
}

// lost says what happened to the proc that may have made it end; empty: nothing.
func (p *proc) lost() string {
	if s := p.loss.Load(); s != nil {
		return *s
	}
	return ""
}

// tell sends a message to a proc that may be gone. It does not wait for procs
// that do not read.
func (p *proc) tell(m wireup.Message, fds ...int) error {
	if p.os.Over() {
		return errors.New("the proc has ended")
	}
	return p.control.Send(m, fds...)
}

// watch follows the proc to its end and judges it.
func (p *proc) watch() {
	defer close(p.judged)
	select {
	case <-p.os.Exited():
	case <-p.silent:
		p.outlivesSocket()
	}
	e, at := p.os.Exit(), time.Now()
	select {
	case <-p.silent:
	case <-time.After(lastWords):
	}
	_ = p.control.Close() // listen ends, if it has not
	if p.rank.Load() != int32(noRank) && procPhase(p.phase.Load()) == welcomed {
		p.n.direct.meet.gone(p)
	}
	phase := procPhase(p.phase.Load())
	switch {
	case p.aborted.Load(): // it has said so, and why
	case phase != finished:
		f := procEnded(p.who(), phase, e).After(p.lost())
		f.At = at
		p.n.end.Fail(f)
	case !e.OK():
		p.n.late(procEnded(p.who(), phase, e))
	}
}

// outlivesSocket waits for the exit of a proc that has closed its control socket.
// One that lives on without having finished cannot be reached any more.
func (p *proc) outlivesSocket() {
	select {
	case <-p.os.Exited():
	case <-time.After(lastWords):
		if procPhase(p.phase.Load()) != finished {
			p.n.end.Fail(&ending.Failure{Text: p.who().String() + " closed its connection to the node without MPI Finalize", Status: 1, Weight: blame.Died})
		}
	}
}

// wordTime is how long procs have to act on KindDown before they are signalled.
const wordTime = 500 * time.Millisecond

// tellProcs tells all procs that the job is over, and gives them a moment. A proc
// that does not read is left to stopProcs.
func (n *node) tellProcs(reason string) {
	for _, p := range n.procs {
		go func() { _ = p.tell(wireup.Message{Kind: wireup.KindDown, Reason: reason}) }()
	}
	n.procsGone(min(wordTime, n.opt.Job.Limits.Stop))
}

// stopProcs ends the procs that are left, by SIGTERM and then by SIGKILL. When it
// returns all are gone and their output is written.
func (n *node) stopProcs() {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, n.opt.Job.Limits.Stop - wordTime}, {syscall.SIGKILL, time.Hour}} {
		if n.procsGone(0) {
			break
		}
		for _, p := range n.procs {
			if err := p.os.Signal(step.signal); err != nil {
				n.log.Warn("cannot signal", "proc", p.who(), "error", err)
			}
		}
		n.procsGone(step.wait)
	}
	for _, p := range n.procs {
		<-p.judged
		<-p.os.Done()
	}
}

// procsGone waits for the end of all procs, for at most limit or until the
// operator wants it now.
func (n *node) procsGone(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	for _, p := range n.procs {
		select {
		case <-p.os.Exited():
			continue
		default:
		}
		select {
		case <-p.os.Exited():
		case <-t.C:
			return false
		case <-n.opt.Now:
			return false
		}
	}
	return true
}
