package inspect

import (
	"sync"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
)

// lastWords are the sites whose heads want to know how this site's procs have ended, and those that do.
type lastWords struct {
	mu          sync.Mutex
	want, known map[wire.ClientRank]bool
}

// wanted notes that a site waits for the last words of others.
func (l *lastWords) wanted(x wire.ClientRank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.want == nil {
		l.want = make(map[wire.ClientRank]bool)
	}
	l.want[x] = true
}

// heard notes that a site was told the last words of this one.
func (l *lastWords) heard(x wire.ClientRank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[wire.ClientRank]bool)
	}
	l.known[x] = true
}

// all reports whether all sites that want the last words have them.
func (l *lastWords) all() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for x := range l.want {
		if !l.known[x] {
			return false
		}
	}
	return true
}

// AllHeard reports whether no site will ask this node any more: those that write reports have its site's
// last words, or ask another host, since the site's first proc is there.
func AllHeard(c *Control) bool {
	w := c.Site.Routes.World
	return c.Procs.Of(w.Clients[w.Self].FirstProc) == nil || c.last.all()
}

// isLast reports whether an answer says of so many procs that they have passed MPI_Finalize, or ended, so
// that nothing will be added to what they have counted.
func isLast(a links.Answer, procs int) bool {
	all := append([]links.Other{{Node: a.Node}}, a.Others...)
	for _, o := range all {
		if o.Node == nil {
			continue
		}
		for i := range o.Node.Procs {
			if s := o.Node.Procs[i].State; s == links.ProcFinished || s == links.ProcEnded {
				procs--
			}
		}
	}
	return procs <= 0
}
