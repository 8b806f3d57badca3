package nativelaunch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/internal/wireup"
)

// gather returns the procs of this host, in their order, when all of them have come.
func (l *Launch) gather(ctx context.Context) (all []procs.Joined, err error) {
	g := &gathering{Launch: l, first: l.Routes.ProcsBefore, joined: make([]procs.Joined, l.Routes.Site.Procs())}
	within, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		_ = l.closeSocket()
		if err != nil {
			g.closeAll()
		}
	}()
	came := make(chan wireup.Attached)
	go l.acceptProcs(within, came)
	defer report.LogWait(l.Log, l.Deadline, g.waitsFor)()
	late := time.NewTimer(time.Until(l.Deadline))
	defer late.Stop()
	var ended <-chan struct{}
	if l.process != nil {
		ended = l.process.Done()
	}
	for int(g.count.Load()) < len(g.joined) {
		select {
		case a := <-came:
			if f := g.admit(a); f != nil {
				_ = a.Conn.Close()
				return nil, f
			}
		case <-ended:
			return nil, g.endedEarly(l.process.Exit())
		case <-late.C:
			return nil, ending.TimedOut("site %s: %v passed while waiting for %s", l.Routes.Site.Name, l.Routes.Job.Limits.Start, g.waitsFor())
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	l.followParents(g.joined)
	return g.joined, nil
}

const acceptPause = 100 * time.Millisecond

func (l *Launch) acceptProcs(ctx context.Context, came chan<- wireup.Attached) {
	for {
		c, err := l.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example, if there are too many open files
			l.Log.Warn("cannot accept a process at the socket for procs", "reason", err)
			time.Sleep(acceptPause)
			continue
		}
		go func() {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			a, err := wireup.ReceiveAttach(c)
			stop() // before others have it
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					l.Log.Warn("refused a process", "reason", err)
				}
				return
			}
			select {
			case came <- a:
			case <-ctx.Done():
				_ = a.Conn.Close()
			}
		}()
	}
}

type gathering struct {
	*Launch
	first  int // number at the site of this host's first proc
	joined []procs.Joined
	count  atomic.Int32 // how many of joined have come; also read for reports of the wait
}

// admit takes a proc if it is the one that the file has here, or says what is wrong.
func (g *gathering) admit(a wireup.Attached) *ending.Failure {
	wrong := func(format string, args ...any) *ending.Failure {
		return ending.Misconfigured(fmt.Errorf("site %s: the launcher of its own MPI "+format, append([]any{g.Routes.Site.Name}, args...)...))
	}
	i := int(a.Peer) - g.first
	switch {
	case a.Size == 1 && g.place.Procs > 1:
		return wrong("has started 1 proc, and the file says %d: either it was told to, and launch needs {procs}; or it belongs to another MPI than mpicc, %s, so that each proc believes it is alone: give the paths of both", g.place.Procs, a.Library)
	case a.Size != g.place.Procs:
		return wrong("has started %s, and the file says %d: give it that number in launch, as {procs}", counted(a.Size), g.place.Procs)
	case a.Peer < 0 || int(a.Peer) >= g.place.Procs:
		return wrong("has started a proc that says it is rank %d of %d", a.Peer, a.Size)
	case i < 0 || i >= len(g.joined):
		return wrong("has placed rank %d on host %v, and the file has it on %v: give it the hosts in the order of the file, by {hostfile} or {machinefile} in launch", a.Peer, g.hosts()[g.self()], g.hosts()[g.hostOf(int(a.Peer))])
	case g.joined[i].Control != nil:
		return wrong("has started rank %d twice, as processes %d and %d", a.Peer, g.joined[i].PID, a.PID)
	}
	g.joined[i] = procs.Joined{Control: a.Conn, PID: a.PID}
	if g.count.Add(1); g.Routes.Native == "" {
		g.Routes.Native = shortName(a.Library)
	}
	return nil
}

func counted(procs int) string {
	if procs == 1 {
		return "1 proc"
	}
	return fmt.Sprintf("%d procs", procs)
}

func (g *gathering) hostOf(local int) (host int) {
	for i, h := range g.hosts() {
		if local -= h.Procs; local < 0 {
			return i
		}
	}
	return 0
}

func (g *gathering) closeAll() {
	for _, j := range g.joined {
		if j.Control != nil {
			_ = j.Control.Close()
		}
	}
}

func (g *gathering) waitsFor() string {
	by := "the launcher of the site's own MPI"
	if g.name != "" {
		by = g.name
	}
	return fmt.Sprintf("MPI Init of the procs that %s starts: %d of %d are there", by, g.count.Load(), len(g.joined))
}

// Limits of what is reported of the launcher's output when it has ended early.
const (
	keptLines = 16
	maxSaid   = 240 // bytes: all of it is in the output at the site
)

func (g *gathering) endedEarly(e launch.Exit) *ending.Failure {
	missing := fmt.Sprintf("before %d of %d procs had called MPI Init", len(g.joined)-int(g.count.Load()), len(g.joined))
	if len(g.joined) < g.place.Procs {
		missing = fmt.Sprintf("before all %d procs had called MPI Init", g.place.Procs)
	}
	text := fmt.Sprintf("site %s: %s %s %s", g.Routes.Site.Name, g.name, e, missing)
	if e.OK() && g.count.Load() == 0 {
		text += ": was the program compiled by impicc? It seems to use the site's MPI itself, or none"
	}
	if said := gist(g.said.KeptLines()); said != "" {
		text += "; it said: " + said
	}
	return &ending.Failure{Text: text, Status: max(e.Status(), 1), Precedence: ending.Died, At: time.Now()}
}

// gist makes one line of the last ones that a launcher has written, each once: procs may all have
// said it.
func gist(lines []string) string {
	var words []string
	for _, line := range lines {
		if line = strings.Join(strings.Fields(line), " "); strings.Trim(line, "-=* ") != "" && !slices.Contains(words, line) {
			words = append(words, line)
		}
	}
	s := strings.Join(words, " | ")
	if len(s) > maxSaid {
		s = strings.ToValidUTF8(s[:maxSaid], "") + "..." // launchers' explanations begin with the main point
	}
	return s
}

// versionText matches the version in what an MPI says of itself, such as "Open MPI v4.1.4, package:
// ..." or "MPICH Version: 4.0.2 ...".
var versionText = regexp.MustCompile(`^(.*?)[\s,:]*(?:[Vv]ersion)?[\s:]*v?(\d+(?:\.\d+)+\w*)`)

func shortName(library string) string {
	if m := versionText.FindStringSubmatch(library); m != nil && len(m[0]) < 80 {
		return strings.TrimSpace(m[1]) + " " + m[2]
	}
	if name := strings.Join(strings.Fields(library), " "); name != "" {
		return name[:min(len(name), 40)]
	}
	return "an unknown MPI"
}
