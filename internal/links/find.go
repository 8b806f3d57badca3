package links

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// FoundNode is a node that was asked for its links.
type FoundNode struct {
	Dir   string   // run directory
	About NodeInfo // from the run directory, or only the PID
	Node  *Node    // its answer; nil if there is none, for the reason in Err
	Err   error
	Since time.Time // when a question was first not answered, as another node has seen it; zero: not known
	// Forwarded means that the node is that of another host of the site, and was asked by the node of
	// Dir.
	Forwarded bool

	known    *Known       // from the run directory of a node that does not answer; may be nil
	launcher int          // process that started the node of Dir
	others   []HostAnswer // nodes that this node has asked, until each is a FoundNode of its own
}

// Ask sends a request to the node and waits for the answer for at most limit.
func (f *FoundNode) Ask(limit time.Duration, r Request) (*Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return Ask(ctx, filepath.Join(f.Dir, SocketName), r)
}

// Survey asks the nodes of run directories, all at the same time, and returns those that
// exist, in the order of the directories. It skips directories of processes that are not
// nodes or have ended. It waits at most limit for each. Of a site that has its hosts on several
// machines, whose nodes ask each other, it returns all hosts, each once.
func Survey(ctx context.Context, dirs []string, limit time.Duration, r Request) (found []FoundNode) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := make([]*FoundNode, len(dirs))
	var wg sync.WaitGroup
	for i, dir := range dirs {
		wg.Go(func() { all[i] = survey(ctx, dir, r) })
	}
	wg.Wait()
	for _, f := range all {
		if f != nil {
			found = append(found, *f)
		}
	}
	found = withOthers(found)
	slices.SortStableFunc(found, func(a, b FoundNode) int {
		return cmp.Or(cmp.Compare(a.About.Client, b.About.Client), cmp.Compare(a.About.Number, b.About.Number))
	})
	return found
}

// withOthers adds what nodes have heard of the other hosts of their sites, but for those that
// answered themselves.
func withOthers(found []FoundNode) []FoundNode {
	all := found
	for i := range found {
		f := &found[i]
		for _, x := range f.others { // a node that has just started knows no ID yet
			f.About.ID = cmp.Or(f.About.ID, x.About.ID)
		}
	}
	together(found)
	identify(found)
	for _, f := range found {
		for _, x := range f.others {
			o := FoundNode{Dir: f.Dir, About: x.About, Node: x.Node, Since: x.Since, Forwarded: true, launcher: f.startedBy()}
			o.About.ID = cmp.Or(o.About.ID, f.About.ID)
			if x.Node == nil {
				o.Err = errors.New(x.Error)
				if x.NotAsked {
					o.Err = notAsked(x.Error)
				}
			}
			if k := slices.IndexFunc(all, o.isSame); k < 0 {
				all = append(all, o)
			} else if all[k].Err != nil && all[k].Since.IsZero() {
				all[k].Since = o.Since
			}
		}
	}
	for i := range all {
		all[i].others = nil
	}
	return all
}

// together gives nodes that have heard of each other one launcher, by which they are known to be of
// one job before that has an ID.
func together(found []FoundNode) {
	for i := range found {
		for _, x := range found[i].others {
			k := slices.IndexFunc(found, func(g FoundNode) bool { return x.About.PID > 0 && x.About == g.About })
			if k >= 0 && x.About.ID == "" {
				join(found, k, i)
			}
		}
		a := &found[i].About
		k := slices.IndexFunc(found[:i], func(g FoundNode) bool {
			return a.ID == "" && a.Server != "" && g.About.ID == "" && g.About.Job == a.Job && g.About.Server == a.Server
		})
		if k >= 0 {
			join(found, i, k)
		}
	}
}

// join gives the nodes that were started together with one node the launcher of another one.
func join(found []FoundNode, from, to int) {
	was, is := found[from].startedBy(), found[to].startedBy()
	for n := range found {
		if found[n].startedBy() == was {
			found[n].launcher = is
		}
	}
}

// identify gives nodes that do not know the ID of their job yet the ID that another node of the job
// has.
func identify(found []FoundNode) {
	for i := range found {
		f := &found[i].About
		if f.ID != "" {
			continue
		}
		k := slices.IndexFunc(found, func(g FoundNode) bool {
			return g.About.ID != "" && g.About.Job == f.Job && (g.startedBy() == found[i].startedBy() || f.Server != "" && g.About.Server == f.Server) &&
				!slices.ContainsFunc(found, func(h FoundNode) bool { return h.About.ID == g.About.ID && h.About.isHost(*f) }) // that job has this host already
		})
		if k >= 0 {
			f.ID = found[k].About.ID
		}
	}
}

// startedBy is the process that started the node, or one that has to do with it.
func (f *FoundNode) startedBy() int { return cmp.Or(f.launcher, f.About.Parent) }

func (f *FoundNode) isSame(g FoundNode) bool {
	return groupOf(*f) == groupOf(g) && f.About.isHost(g.About)
}

func survey(ctx context.Context, dir string, r Request) *FoundNode {
	path := filepath.Join(dir, SocketName)
	if st, err := os.Lstat(path); err != nil || st.Mode()&os.ModeSocket == 0 {
		return nil // other programs, such as impi-bench, have such directories too
	}
	f := &FoundNode{Dir: dir, About: readAbout(dir)}
	r.Op = OpLinks
	a, err := Ask(ctx, path, r)
	switch {
	case errors.Is(err, ErrGone):
		return nil
	case err != nil:
		f.Err, f.known = explain(err, f.About.PID), readKnown(dir)
	case a.Node == nil:
		f.Err = errors.New("the node's answer has no links")
	default:
		f.Node, f.About, f.others = a.Node, a.Node.NodeInfo, a.Others
	}
	return f
}

// AwaitEnding waits until the nodes of a job, with these run directories, are about to end or one
// of them fails, and returns how. It returns nil if no node reports it, or if ctx, which needs a
// deadline, ends.
func AwaitEnding(ctx context.Context, dirs []string, id string) (end *Ending) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := make(chan *Ending, len(dirs))
	asked := 0
	for _, dir := range dirs {
		if readAbout(dir).ID != id {
			continue
		}
		asked++
		go func() {
			a, err := Ask(ctx, filepath.Join(dir, SocketName), Request{Op: OpEnding})
			if err != nil {
				a = &Answer{} // the node does not support the question, or was killed
			}
			said <- a.Ending
		}()
	}
	for range asked {
		if e := <-said; e != nil {
			if end = e; e.Failure != "" {
				break
			}
		}
	}
	return end
}

// readAbout reads the file in a run directory by which a node identifies itself.
func readAbout(dir string) (a NodeInfo) {
	if f, err := os.Open(filepath.Join(dir, AboutName)); err == nil {
		b, rerr := io.ReadAll(io.LimitReader(f, maxAbout))
		_ = f.Close()
		if rerr != nil || json.Unmarshal(b, &a) != nil {
			a = NodeInfo{}
		}
	}
	if a.PID == 0 { // the directory's name has it too
		pid, _, _ := strings.Cut(filepath.Base(dir), "-")
		a.PID, _ = strconv.Atoi(pid)
	}
	return a
}

// explain adds what the kernel knows of a process that does not answer.
func explain(err error, pid int) error {
	if !errors.Is(err, ErrSilent) || pid <= 0 {
		return err
	}
	b, rerr := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if rerr != nil {
		return err
	}
	if i := strings.LastIndexByte(string(b), ')'); i >= 0 && i+2 < len(b) && (b[i+2] == 'T' || b[i+2] == 't') {
		return stoppedError{err}
	}
	return err
}

// notAsked is ErrNotAsked with the reason, as another node gives it.
type notAsked string

func (e notAsked) Error() string { return string(e) }

func (e notAsked) Is(target error) bool { return target == ErrNotAsked }

type stoppedError struct{ cause error }

func (e stoppedError) Error() string {
	return e.cause.Error() + ": its process is stopped (SIGSTOP, or a debugger)"
}

func (e stoppedError) Unwrap() error { return e.cause }
