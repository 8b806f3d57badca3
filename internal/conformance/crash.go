package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// crashCases are done for each data plane.
var crashCases = []Case{
	{ID: "P-LIFE-06", Name: "no-crash", Kind: Robust, run: noCrash,
		Rule: "the process does not crash: what goes wrong in one link or listener is an error of that one"},
}

// crashes are the messages that crashed processes of the plugin have printed during a case.
type crashes struct {
	mu    sync.Mutex
	texts []string
	all   []context.CancelFunc // cancels the waits for the process
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

func (c *crashes) first() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.texts) == 0 {
		return ""
	}
	return c.texts[0]
}

// crashTexts are what messages about crashes begin with: those of the runtimes of Go, C++ and
// Python, and of the sanitizers of C compilers.
var crashTexts = []string{"panic: ", "fatal error: ", "SIGSEGV", "terminate called", "Traceback ", "==", "Fatal Python error"}

// crashLines is how many lines of a message are shown: a panic's text, and where it was.
const crashLines = 12

func crashIn(lines []string) string {
	for i, line := range lines {
		for _, words := range crashTexts {
			if strings.HasPrefix(line, words) {
				return strings.Join(lines[i:min(len(lines), i+crashLines)], "\n")
			}
		}
	}
	return ""
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

func crashReason(res Result, text string) string {
	if res.Reason == "" || res.Verdict != transporttest.Fail {
		return fmt.Sprintf("%s: the plugin's process has crashed; mend what it says:\n%s", res.ID, text)
	}
	return fmt.Sprintf("%s\nthe plugin's process has crashed meanwhile; mend what it says:\n%s", res.Reason, text)
}
