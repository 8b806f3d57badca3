package node

import (
	"fmt"
	"io"
	"strings"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch"
)

// newStderr makes the output for the log and for what procs write to stderr. If it cannot be
// written the job goes on: bytes are lost, and a line says how many as soon as something can be
// written again.
func newStderr(w io.Writer) *launch.Output {
	o := launch.NewOutput(w, nil)
	o.MarkGaps(func(l launch.Loss) string { return fmt.Sprintf("impi-node: not written here: %v\n", l) })
	return o
}

// sayLosses says at the end what was not written. If output of procs is missing it gives a failure,
// as scripts must not take the rest for all of it. That is logged too: if several sites fail, a
// launcher's last line is about one of them.
func (n *node) sayLosses() *ending.Failure {
	if n.opt.spawned != nil {
		return nil // the site's own node gets the outputs
	}
	var f *ending.Failure
	if l := n.stdout.Lost(); l.Bytes > 0 && n.stdout.Err() == nil {
		f = ending.NodeFailed(fmt.Errorf("the output of site %s is incomplete: not written: %v", n.opt.Site.Name, l))
		n.log.Error(f.Text)
	}
	if l := n.stderr.Lost(); l.Bytes > 0 {
		n.log.Warn("the log is incomplete", "not written", strings.TrimSpace(l.String()))
	}
	return f
}
