package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// crashCases are done for each data plane.
var crashCases = []Case{
	{ID: "P-LIFE-06", Name: "no-crash", Kind: Robust, run: noCrash,
		Rule: "the process does not crash: what goes wrong in one link or listener is an error of that one"},
}

// crashes are the ends of the plugin's processes during a case.
type crashes struct {
	failed atomic.Bool // the case has

	mu     sync.Mutex
	texts  []string             // of processes that have ended without the case's doing
	ends   []string             // of those that might have ended because of the case
	killed []int                // by the case
	all    []context.CancelFunc // cancels the waits for the process
}

// noted is a T that notes in crashes that the case has failed.
type noted struct {
	transporttest.T
	crashes *crashes
}

func (n noted) Fatalf(format string, args ...any) {
	n.crashes.failed.Store(true)
	n.T.Fatalf(format, args...)
}

// endWith ends a wait when the process crashes, after which nothing will come.
func (c *crashes) endWith(cancel context.CancelFunc) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, cancel)
}

func (c *crashes) add(text string) {
	if c == nil || text == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
	for _, cancel := range c.all {
		cancel()
	}
}

// ended keeps how a process has ended that might: it explains a failure, and is none.
func (c *crashes) ended(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, how)
}

// kills notes that the case kills a process.
func (c *crashes) kills(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = append(c.killed, pid)
}

func (c *crashes) hasKilled(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.killed, pid)
}

// judge adds to a case's result how processes have ended.
func (c *crashes) judge(res *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := res.Verdict == transporttest.Fail
	switch {
	case len(c.texts) > 0 && failed && res.Reason != "":
		res.Reason += "\nthe plugin's process has crashed meanwhile; mend what it says:\n" + c.texts[0]
	case len(c.texts) > 0:
		res.Reason = fmt.Sprintf("%s: the plugin's process has crashed (the rule: %s); mend what it says:\n%s", res.ID, res.Rule, c.texts[0])
	case failed && len(c.ends) > 0:
		res.Reason += "\nthe plugin's process has ended meanwhile: it " + c.ends[0]
	default:
		return
	}
	res.Verdict, res.Remedy = transporttest.Fail, crashRemedy
}

// crashRemedy is the remedy where a process has ended. That of the rule which it violates by that
// is for processes that live.
const crashRemedy = "find out why the process has ended, from what it wrote or with a debugger; " +
	"what one link or one peer causes must be an error of that one"

// crashTexts are what messages about crashes begin with: those of the runtimes of Go, C++ and
// Python. A process that goes on after them has only logged them.
var crashTexts = []string{"panic: ", "fatal error: ", "SIGSEGV", "terminate called", "Traceback ", "Fatal Python error"}

// sanitized is what the sanitizers of C compilers write about an error, whether or not they end the
// process.
var sanitized = regexp.MustCompile(`^==\d+==ERROR: `)

// crashLines is how many lines of a message are shown: a panic's text, and where it was.
const crashLines = 12

// crashIn finds a message about a crash in what a process has written; died: it has ended, and not
// in order.
func crashIn(lines []string, died bool) string {
	for i, line := range lines {
		crashed := func(words string) bool { return strings.HasPrefix(line, words) }
		if died && slices.ContainsFunc(crashTexts, crashed) || sanitized.MatchString(line) {
			return strings.Join(lines[i:min(len(lines), i+crashLines)], "\n")
		}
	}
	return ""
}

// crashOf is crashIn for a process that has ended in this way; without a message it is that, and
// the last lines.
func crashOf(how string, lines []string) string {
	if text := crashIn(lines, true); text != "" {
		return text
	}
	return strings.Join(append([]string{"it " + how}, lines[max(0, len(lines)-crashLines):]...), "\n")
}

// fatal are the signals of which a process dies by a fault of its own, or for want of memory.
var fatal = []syscall.Signal{syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGSYS, syscall.SIGTRAP, syscall.SIGKILL}

// watch notes how the processes of a plugin end that a case has a node's client start.
func (c *crashes) watch() func(host.Status) {
	var pid int
	var last *host.Error
	return func(s host.Status) {
		if s.PID != 0 {
			pid = s.PID
		}
		died, ok := errors.AsType[*host.Error](s.LastErr)
		if !ok || died == last {
			return
		}
		last = died
		lines := strings.Split(strings.TrimSpace(died.Output), "\n")
		if errors.Is(died, host.ErrCrashed) && !c.hasKilled(pid) {
			c.add(crashOf(died.Problem, lines))
		} else {
			c.add(crashIn(lines, errors.Is(died, host.ErrNotPlugin))) // it has ended before it was ready
		}
	}
}

// settle waits, if the case has failed, until the plugin's supervisor has seen what may be the
// cause: the end of the process.
func (c *crashes) settle(p *host.Plugin) {
	if !c.failed.Load() {
		return
	}
	pid := p.Status().PID
	for end := time.Now().Add(afterFailure); time.Now().Before(end) && p.Status().PID == pid && pid != 0; {
		time.Sleep(10 * time.Millisecond)
	}
}

// afterFailure is how long the end of a process may take to be seen after what it has caused.
const afterFailure = 300 * time.Millisecond

// report notes how a process has ended that a case has started without a client.
func (c *crashes) report(n *node) {
	wait := time.Duration(0)
	if c.failed.Load() {
		wait = afterFailure
	}
	if !n.gone(wait) {
		c.add(crashIn(n.err.all(), false))
		return
	}
	end := n.cmd.ProcessState
	by, signalled := end.Sys().(syscall.WaitStatus)
	how := fmt.Sprintf("exited with status %d", end.ExitCode())
	if signalled = signalled && by.Signaled(); signalled {
		how = fmt.Sprintf("was killed by signal %d (%v)", by.Signal(), by.Signal())
	}
	if signalled && slices.Contains(fatal, by.Signal()) {
		c.add(crashOf(how, n.err.all()))
		return
	}
	c.add(crashIn(n.err.all(), !end.Success()))
	if n.conn != nil {
		c.ended(how)
	}
}

// noCrash does what every job does, and no more: a process that crashes in it is found by what it
// wrote, which do adds to each case.
func noCrash(e *env) {
	near, far, ln := e.listening()
	for range 3 {
		a, b := e.connect(e.context(), far, ln)
		e.must(a.CloseSend())
		e.must(b.CloseSend())
		a.Close()
		b.Close()
	}
	// A dial that its peer's node gives up.
	ctx, cancel := context.WithCancel(e.context())
	cancel()
	if l, err := far.Transport().Dial(ctx, transports.DialSpec{Address: ln.Address()}); err == nil {
		l.Close()
	}
	e.must(ln.Close())
	if n, m := near.Status().Starts, far.Status().Starts; n != 1 || m != 1 {
		e.Fatalf("ordinary links have ended processes: the one that listens was started %d times, the one that dials %d times", n, m)
	}
}
