// Package nativelaunch starts the procs of a native site by the launcher of the site's own MPI, and
// learns from them who they are.
//
// Each host's node listens at an abstract socket of the same name, and checks that the shim is
// there. Once all do, the head starts the launcher with the program and the name of the socket.
// Each proc initializes the site's MPI, which tells it its rank, and then connects to the socket of
// its machine.
package nativelaunch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/wireup"
)

// Settings are what the start of a native site's procs needs of its node.
type Settings struct {
	Routes   *routes.Table // its name of the site's MPI is set
	Cluster  *client.Cluster
	Procs    *procs.Set // gets the procs
	Launcher *launch.Launcher
	Deadline time.Time // until which all procs must have come
	Log      hclog.Logger

	// Lost is called with how the launcher, or a daemon of it, has failed while the job ran. If it
	// returns false the job ends by that.
	Lost func(*ending.Failure) bool
}

// Launch is the start of a native site's procs, and what starts them. A nil *Launch is for other
// sites.
type Launch struct {
	Settings
	Dir string             // for files, of the node alone
	End *lifetime.Lifetime // gets how the launcher has ended

	meeting meeting // of the hosts' nodes
	socket  wireup.AttachListener
	place   native.Environment
	env     string // by which processes that have the place are recognized

	name    string          // of the launcher, for messages
	process *launch.Process // nil until it runs, and on hosts other than the head
	said    *launch.Stream  // its output to standard error
	watched chan struct{}   // closed when its end was reported
	own     bool            // it has ended by itself
	ordered atomic.Bool     // its end was requested
	parents parents
}

// New returns a Launch, or nil for a site that has no MPI of its own.
func New(s Settings) *Launch {
	if s.Routes.Site.Native == nil {
		return nil
	}
	l := &Launch{Settings: s}
	if s.Cluster != nil {
		l.meeting.open(s.Cluster)
	}
	return l
}

// Start starts the procs, and returns those of this host in their order when all of them have come.
func (l *Launch) Start(ctx context.Context) ([]procs.Joined, error) {
	site := l.Routes.Site
	err := l.prepare(ctx)
	if err == nil && l.Cluster.IsHead() {
		if err = l.run(); err != nil {
			err = fmt.Errorf("the launcher of its own MPI: %w", err)
		}
	}
	if err != nil {
		_ = l.closeSocket()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if f, ok := errors.AsType[*ending.Failure](err); ok {
			return nil, f
		}
		return nil, ending.Misconfigured(fmt.Errorf("site %s: %w", site.Name, err))
	}
	return l.gather(ctx)
}

func (l *Launch) prepare(ctx context.Context) (err error) {
	within, cancel := context.WithDeadline(ctx, l.Deadline)
	defer cancel()
	site := l.Routes.Site
	l.place = native.Environment{Site: site.Name, Procs: l.total()}
	var a agreed
	if l.Cluster.IsHead() {
		a.Socket = wireup.AttachName()
		if a.Shim, a.MPI, err = l.shim(within); err != nil {
			return err
		}
	} else {
		if a, err = l.meeting.ask(within, l.Cluster); err != nil {
			return err
		}
		if err := l.see(within, a.Shim); err != nil {
			return err
		}
	}
	l.place.Socket, l.place.Shim, l.Routes.Native = a.Socket, a.Shim, a.MPI
	if l.env, err = l.place.Encode(); err != nil {
		return err
	}
	if l.socket, err = wireup.ListenAttach(a.Socket); err != nil {
		return sameMachine(err)
	}
	return l.meeting.together(within, l.Cluster, a)
}

// sameMachine explains why the socket, whose name only nodes of this job know, cannot be opened.
func sameMachine(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("two nodes of the site are on this machine, and the procs that its launcher starts could come to either: write one host for the machine: %w", err)
	}
	return err
}

// shim returns the file by which procs call the site's MPI, and the name of that MPI if it was
// asked.
func (l *Launch) shim(ctx context.Context) (path, mpi string, err error) {
	n := l.Routes.Site.Native
	if n.Shim != "" {
		return n.Shim, "", nil
	}
	path, info, err := native.Build(ctx, n.Compiler(l.Routes.Job.Dir), func(what string) { l.Log.Info(what) })
	return path, strings.TrimSpace(info.Vendor + " " + info.Version), err
}

// see makes sure that this host has the head's shim: it may be on a file system that both have, or
// is made here.
func (l *Launch) see(ctx context.Context, shim string) error {
	_, err := os.Stat(shim)
	if err == nil {
		return nil
	}
	own := shim
	if l.Routes.Site.Native.Shim == "" { // otherwise the file names the shim, and none is built
		own, _, err = l.shim(ctx)
	}
	if err == nil && own != shim {
		err = fmt.Errorf("it would be %s here", own)
	}
	if err != nil {
		return fmt.Errorf("the shim that the head has, %s, is not on host %s: %w: keep the cache folder on a file system of all hosts, or give all of them the file that `shim` names", shim, l.hosts()[l.self()], err)
	}
	return nil
}

// hosts are all hosts of the site, of which this node has some.
func (l *Launch) hosts() []config.Host {
	if l.Cluster == nil {
		return l.Routes.Site.Hosts
	}
	hosts := slices.Clone(l.Cluster.Hosts)
	for i := range hosts {
		hosts[i].Procs = l.Cluster.Procs(i)
	}
	return hosts
}

func (l *Launch) self() int {
	if l.Cluster == nil {
		return 0
	}
	return l.Cluster.Self
}

func (l *Launch) total() (n int) {
	for _, h := range l.hosts() {
		n += h.Procs
	}
	return n
}

// words are the launcher's words, from the file or by what the site's MPI is.
func (l *Launch) words() []string {
	switch n := l.Routes.Site.Native; {
	case n.Launch != nil:
		return n.Launch
	case l.Cluster == nil:
		return []string{"mpirun", "-n", config.NativeProcs}
	case strings.HasPrefix(l.Routes.Native, "Open MPI"):
		return []string{"mpirun", "-n", config.NativeProcs, "--hostfile", config.NativeHostfile}
	}
	return []string{"mpirun", "-n", config.NativeProcs, "-f", config.NativeMachinefile}
}

// fill replaces the placeholders in words, and writes the files that they stand for.
func (l *Launch) fill(words []string) ([]string, error) {
	stands := []string{config.NativeProcs, strconv.Itoa(l.total())}
	for _, f := range []struct{ word, name, line string }{
		{config.NativeHostfile, "hostfile", "%s slots=%d\n"}, {config.NativeMachinefile, "machinefile", "%s:%d\n"},
	} {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, f.word) }) {
			continue
		}
		var text strings.Builder
		for _, h := range l.hosts() {
			fmt.Fprintf(&text, f.line, h, h.Procs)
		}
		path := filepath.Join(l.Dir, f.name)
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
		stands = append(stands, f.word, path)
	}
	filled := slices.Clone(words)
	for i := range filled {
		filled[i] = strings.NewReplacer(stands...).Replace(filled[i])
	}
	return filled, nil
}

// envProgram sets variables on whatever machine the launcher starts it.
const envProgram = "/usr/bin/env"

func (l *Launch) run() error {
	words, err := l.fill(l.words())
	if err != nil {
		return err
	}
	spec, own, err := l.Procs.LauncherSpec()
	if err != nil {
		return err
	}
	if spec.Stdin != nil {
		defer spec.Stdin.Close() // it has its own copy
	}
	if spec.Path, err = exec.LookPath(l.Routes.Site.Native.Beside(l.Routes.Job.Dir, words[0])); err == nil {
		spec.Path, err = filepath.Abs(spec.Path)
	}
	if err != nil {
		return fmt.Errorf("%w; load the module of that MPI, or name it in launch", err)
	}
	l.name = filepath.Base(spec.Path)
	program := l.Routes.Site.Program
	spec.Args = slices.Concat(words, []string{envProgram, native.Variable + "=" + l.env}, own, []string{program.Path}, program.Command[1:])
	l.said = spec.Stderr.(*launch.Stream)
	l.said.KeepLines(keptLines)
	l.Log.Debug("the launcher of the site's MPI is started", "command", spec.Args)
	if l.process, err = l.Launcher.Start(spec); err != nil {
		return err
	}
	l.watched = make(chan struct{})
	go l.watch()
	return nil
}

// endTime is how long to wait for the last messages of procs after the end of the launcher.
const endTime = time.Second

// fromOutside are signals that kill a launcher through no fault of its own.
var fromOutside = []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

func (l *Launch) watch() {
	defer close(l.watched)
	<-l.process.Exited()
	e, at := l.process.Exit(), time.Now()
	if e.OK() {
		return
	}
	f := &ending.Failure{Text: fmt.Sprintf("site %s: %s %s", l.Routes.Site.Name, l.name, e), Status: max(e.Status(), 1), Precedence: ending.Lost, At: at}
	all := l.Procs.All()
	limit, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if slices.Contains(fromOutside, e.Signal) && !l.ordered.Load() {
		f.Precedence = ending.Decided // if procs end, they end by that
		cancel()
	}
	for _, p := range all {
		select {
		case <-p.EndHandled():
		case <-limit.Done(): // it lives on, or does not report its end
		}
	}
	switch {
	case len(all) == 0: // gather reports more
	case slices.ContainsFunc(all, func(p *procs.Proc) bool { return p.State() != ending.Finished }):
		// If a proc reports how it ended, that is the better reason.
		f.Text += " before the procs had passed MPI Finalize"
		l.fail(f)
	default:
		l.End.Report(func(_ time.Time, x *ending.Ending) { x.ReportLate(f) })
	}
}

func (l *Launch) fail(f *ending.Failure) {
	if !l.Lost(f) {
		l.End.Fail(f)
	}
}

// Finish waits for the end of the launcher, when all procs of the site have ended.
func (l *Launch) Finish(ctx context.Context) error {
	if l == nil || l.process == nil {
		return nil
	}
	limit := routes.CurrentLimits(l.Routes).Stop
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-l.watched:
		return nil
	case <-late.C:
		l.End.Report(func(_ time.Time, x *ending.Ending) {
			x.ReportLate(ending.TimedOut("site %s: %s still runs %v after all of its procs have ended, and is stopped now: how the procs ended is not known; perhaps one of its daemons was killed, such as hydra_pmi_proxy or orted", l.Routes.Site.Name, l.name, limit))
		})
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends the launcher and the remaining procs, when the procs that have come have ended.
func (l *Launch) Stop() {
	if l == nil {
		return
	}
	_ = l.closeSocket()
	l.parents.close()
	if l.process != nil {
		if len(l.Procs.All()) > 0 {
			l.endsWithin(min(ownEnd, routes.CurrentLimits(l.Routes).Stop/2))
			l.own = l.process.Over()
		}
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if l.process.Over() {
				break
			}
			l.ordered.Store(true)
			if err := l.process.Signal(s); err != nil {
				l.Log.Warn("cannot signal", "launcher", l.name, "error", err)
			}
			l.endsWithin(routes.CurrentLimits(l.Routes).Stop)
		}
	}
	if l.env != "" {
		sweep(native.Variable+"="+l.env, l.Log)
	}
	if l.process != nil {
		<-l.watched
		<-l.process.Done()
	}
}

// ownEnd is how long a launcher may take to end by itself after its procs. Open MPI's crashes if it
// is told to end meanwhile.
const ownEnd = 3 * time.Second

func (l *Launch) endsWithin(limit time.Duration) {
	select {
	case <-l.process.Exited():
	case <-time.After(limit):
	case <-l.Procs.KillNow:
	}
}

// WithReason returns the failure of the job with the exit status and the last output of the
// launcher, if the failure is a proc's of which only the end is known here: the launcher may have
// ended that proc, or know how it ended. It is to be called after Stop.
func (l *Launch) WithReason(f *ending.Failure) *ending.Failure {
	if l == nil || l.process == nil || f == nil || !l.own || f.Proc == 0 || f.Status != 1 || l.process.Exit().OK() {
		return f
	}
	known := *f // others have received this failure
	known.Status = l.process.Exit().Status()
	known.Text += fmt.Sprintf("; %s %s", l.name, l.process.Exit())
	if said := gist(l.said.KeptLines()); said != "" {
		known.Text += ", and said: " + said
	}
	return &known
}

// PID returns the process ID of the launcher, which runs.
func (l *Launch) PID() int { return l.process.PID() }

// Over reports whether the launcher has ended, or there is none here.
func (l *Launch) Over() bool { return l == nil || l.process == nil || l.process.Over() }

func (l *Launch) closeSocket() error {
	if l.socket.UnixListener == nil {
		return nil
	}
	return l.socket.Close()
}
