package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/mpiexec"
	"github.com/openimpi/impi/internal/node"
	"github.com/openimpi/impi/internal/procs"
)

type siteProcess struct {
	site    config.Site
	process *launch.Process
	conn    net.Conn // to the process

	heeds    chan struct{} // closed when the process handles signals for its procs, or has ended
	outcome  outcome
	reported bool
	order    int32 // the order in which the nodes ended
}

// launchSites starts a node for each site and waits for all of them. If the
// job's server is embedded in one of them it runs here instead, so that all
// sites know its port.
func launchSites(o *options, job *config.Job, nodes []nodeSpec, told order, signals <-chan os.Signal, std streams) int {
	l := launch.New()
	defer l.Close()
	log, limiter := o.logger(nodes[0].site, std.err)
	defer limiter.Close()
	s, err := newServing(job, nodes, told, log)
	if err != nil {
		complain(std.err, err)
		return ending.StatusNode
	}
	defer s.close()
	s.told.HangupReloads = hangupReloads
	var running []*siteProcess
	before, all := boundProcs(o, nodes)
	for i, x := range nodes {
		s.told.BoundBefore, s.told.Bound = before[i], all
		p, err := startSite(l, o, job, x, s, std)
		if err != nil {
			complain(std.err, fmt.Errorf("site %s: %w", x.site.Name, err))
			endAll(running)
			return ending.StatusNode
		}
		running = append(running, p)
		if x.host <= 0 && !x.site.Spare {
			s.started(x.site.Client, p.process)
		}
	}
	forward := func(sig syscall.Signal) {
		for _, p := range running {
			_ = p.process.Signal(sig) // it may have ended
		}
	}
	stop := onSignals(func() { passHangup(running) }, forward, forward)
	defer stop()
	defer passOn(signals, func(sig syscall.Signal) {
		for _, p := range running {
			<-p.heeds
			_ = p.process.SignalProcess(sig) // not its process group: a proc may still be in it
		}
	})()
	release := s.onFailure(func() { forward(syscall.SIGTERM) })
	again := &relauncher{serving: s, job: job, first: nodes[0].site.Name, addresses: told.Addresses, fixed: o.logLevel != "", log: log}
	losses := &lossLog{log: log}
	await(running, func() { forward(syscall.SIGTERM) }, again.reload, losses.say, losses.spareEnded, job.Survive)
	release()
	verdict := s.explain(judge(running))
	if verdict.Text != "" {
		complain(std.err, verdict.Text)
	}
	return verdict.Status
}

// passHangup has the nodes read the job file again; hosts of one site do that together.
func passHangup(running []*siteProcess) {
	told := make(map[string]bool)
	for _, p := range running {
		if !told[p.site.Name] {
			<-p.heeds
			_ = p.process.SignalProcess(syscall.SIGHUP) // it may have ended
		}
		told[p.site.Name] = true
	}
}

// boundProcs counts the procs that get cores of their own: those before each site, and all.
func boundProcs(o *options, nodes []nodeSpec) (before []int, all int) {
	for _, x := range nodes {
		site := x.site
		before = append(before, all)
		if o.apply(&site); site.Program.Bind == config.BindCore && !site.Spare {
			all += x.procs()
		}
	}
	return before, all
}

func startSite(l *launch.Launcher, o *options, job *config.Job, x nodeSpec, s *serving, std streams) (*siteProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	conn, theirs, err := handoffPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	var stdin *os.File
	if x.host <= 0 && holdsStdin(job, x.site) {
		if stdin, err = launch.Stdin(std.in); err != nil {
			return nil, err
		}
	}
	args, environ := mpiexec.FlagsToEnviron(o.args(x))
	p, err := l.Start(launch.Spec{
		Path: self, Args: append([]string{"impi-node"}, args...),
		Env:   slices.Concat(os.Environ(), environ, []string{procs.HandoffVariable + "=3"}),
		Stdin: stdin, Stdout: std.out, Stderr: std.err, Files: []*os.File{theirs},
	})
	if stdin != nil && stdin != std.in {
		_ = stdin.Close() // the node has its own copy
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	sp := &siteProcess{site: x.site, process: p, conn: conn, heeds: make(chan struct{})}
	return sp, json.NewEncoder(conn).Encode(s.told)
}

func holdsStdin(job *config.Job, site config.Site) bool {
	if site.Spare {
		return false
	}
	first := 0
	for _, s := range job.Sites {
		if s.Client < site.Client {
			first += s.Procs()
		}
	}
	rank := site.Program.Stdin
	return rank >= first && (rank < first+site.Procs() || !site.CountsKnown())
}

// await waits for all nodes and reads their last messages. If one fails before the job has begun
// there, it calls endOthers after a while, because nodes that do not learn of the failure from the
// server would wait for that site. With survive the others go on without a node that has died.
// reloaded is called when a site has taken changes of the job file, lost when a node has heard that
// procs are lost, and spare when the node of a spare site has failed, which is no matter of the
// others.
func await(running []*siteProcess, endOthers func(), reloaded func(site string), lost func(wire.Lost), spare func(site string, o outcome), survive bool) {
	var wg sync.WaitGroup
	var ended atomic.Int32
	all := make(chan struct{})
	defer close(all)
	endSoon := sync.OnceFunc(func() {
		go func() {
			select {
			case <-time.After(serverWord):
				endOthers()
			case <-all:
			}
		}()
	})
	for _, p := range running {
		wg.Go(func() {
			dec := json.NewDecoder(io.LimitReader(p.conn, mostNews))
			var heeds signalsReady
			_ = dec.Decode(&heeds)
			close(p.heeds)
			for more := heeds.Signals; more; {
				var n news
				p.reported = dec.Decode(&n) == nil
				switch more = p.reported && (n.Reloaded || n.Loss != nil); {
				case n.Loss != nil:
					lost(*n.Loss)
				case n.Reloaded:
					reloaded(p.site.Name)
				}
				p.outcome = n.outcome
			}
			p.order = ended.Add(1)
			if p.outcome.Early && !p.site.Spare && p.outcome.Status != statusOK && !p.outcome.Remote {
				endSoon()
			}
			e := p.process.Exit()
			<-p.process.Done()
			_ = p.conn.Close()
			if !p.reported {
				if !survive && !p.site.Spare {
					endSoon()
				}
				p.outcome = outcome{Text: fmt.Sprintf("%s: its node %v", nameOf(p.site), e), Status: e.Status()}
			}
			if p.site.Spare && p.outcome.Status != statusOK && !p.outcome.Remote {
				spare(p.site.Name, p.outcome)
			}
		})
	}
	wg.Wait()
}

func nameOf(s config.Site) string {
	if s.Spare {
		return fmt.Sprintf("spare site %s", s.Name)
	}
	return fmt.Sprintf("site %s (client %d)", s.Name, s.Client)
}

// judged returns the nodes whose ends count: those of spare sites only if there are no others.
func judged(running []*siteProcess) []*siteProcess {
	all := slices.DeleteFunc(slices.Clone(running), func(p *siteProcess) bool { return p.site.Spare })
	if len(all) == 0 {
		return running
	}
	return all
}

// judge picks the outcome that explains the others: that of a node that died without a message, or
// else of the first that failed by itself, or else of one that was told of a failure.
func judge(running []*siteProcess) outcome {
	running = judged(running)
	slices.SortFunc(running, func(a, b *siteProcess) int { return int(a.order - b.order) })
	best := outcome{}
	const died = 3
	rank := func(p *siteProcess) int {
		switch {
		case !p.reported && p.outcome.Status != 0:
			return died
		case p.outcome.Status == 0:
			return 0
		case p.outcome.Remote || p.outcome.Status == ending.StatusRemote:
			return 1
		}
		return 2
	}
	highest, procs, lost := 0, 0, 0
	for _, p := range running {
		if r := rank(p); r > highest {
			best, highest, procs = p.outcome, r, p.site.Procs()
		}
		lost = max(lost, p.outcome.Lost)
	}
	if highest == died && lost > 0 {
		best.Text = ending.ContinuedText(best.Text, lost, procs)
	}
	return best
}

func endAll(running []*siteProcess) {
	for _, p := range running {
		_ = p.process.Signal(syscall.SIGTERM) // it may have ended
	}
	await(running, func() {}, func(string) {}, func(wire.Lost) {}, func(string, outcome) {}, false)
}

// mostNews bounds what a node tells its launcher, in bytes: a line for each proc that is lost by
// itself.
const mostNews = 64 << 20

// lossLog logs each loss once, though every node of a launcher reports it.
type lossLog struct {
	mu     sync.Mutex
	losses ending.Losses
	log    hclog.Logger
}

func (l *lossLog) say(x wire.Lost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, news := range l.losses.Add(x) {
		l.log.Warn(node.GoesOnWithout, "first_rank", news.First, "last_rank", news.Last, "reason", news.Text)
	}
}

func (l *lossLog) spareEnded(site string, o outcome) {
	l.log.Warn("a spare site is gone, and the job goes on without it", "site", site, "reason", o.Text)
}
