package node

import (
	"fmt"
	"io"
	"strings"

	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/wireup"
)

// cutTrace is a trace file that has not all of its proc's packets.
type cutTrace struct {
	who who
	wireup.CutTrace
	reason string
}

// newStderr is where the log and what procs write to stderr goes. A job does not die
// of it: what cannot be written is lost, and said as soon as there is room.
func newStderr(w io.Writer) *launch.Output {
	o := launch.NewOutput(w, nil)
	o.MarkGaps(func(l launch.Loss) string { return fmt.Sprintf("impi-node: not written here: %v\n", l) })
	return o
}

// traceCut notes that a proc's trace has ended early.
func (n *node) traceCut(p *proc, m wireup.Message) {
	c := cutTrace{who: p.who(), CutTrace: *m.Cut, reason: m.Reason}
	n.mu.Lock()
	n.cut = append(n.cut, c)
	n.mu.Unlock()
	n.sayCut("a trace is cut: the job goes on", c)
}

func (n *node) sayCut(text string, c cutTrace) {
	n.log.Warn(text, "proc", c.who, "file", c.File, "bytes", c.Bytes, "reason", c.reason)
}

// sayLosses says at the end what was not written. It gives the failure of a site
// whose procs' output is incomplete, which scripts must not take for all of it.
func (n *node) sayLosses() *ending.Failure {
	n.mu.Lock()
	cut := n.cut
	n.mu.Unlock()
	for _, c := range cut {
		n.sayCut("a trace is incomplete", c)
	}
	if n.opt.share != nil {
		return nil // the site's own node has the outputs
	}
	var f *ending.Failure
	if l := n.stdout.Lost(); l.Bytes > 0 && n.stdout.Err() == nil {
		f = ending.NodeFailed(fmt.Errorf("the output of site %s is incomplete: not written: %v", n.opt.Site.Name, l))
	}
	if l := n.stderr.Lost(); l.Bytes > 0 {
		n.log.Warn("the log is incomplete", "not written", strings.TrimSpace(l.String()))
	}
	return f
}
