package wireup

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// Table is what a proc knows of all procs of the job. Most of it is a table of core/startup in
// memory that the node and all of its procs share and no process can change. The rest are Views. A
// proc looks up what it needs, and keeps nothing for procs that it does not communicate with.
type Table struct {
	procs startup.Procs
	views []View
	data  []int // of each view: the number of its Data
}

// View describes how the procs of a host see procs of consecutive ranks, up to those of the next
// View: all that can be known of a proc except its identity, its place and its card. Most jobs have
// a few: for the host, the rest of its site, and other sites.
type View struct {
	First                wire.WorldRank `json:"first,omitempty"`
	Path                 Path           `json:"path"`
	Data                 string         `json:"data"`
	Foreign              bool           `json:"foreign,omitempty"`
	ReduceOnPointToPoint bool           `json:"reduce_on_p2p,omitempty"`
	Unexpected           int64          `json:"unexpected,omitempty"`
	Allows               bool           `json:"allows,omitempty"`
}

// ProcRun describes consecutive procs that differ only in their PIDs.
type ProcRun struct {
	First wire.WorldRank
	N     int
	Proc  Proc // the first proc, with the path that all procs of the host have to it; without its Machine
}

// ShareProcs puts the procs of a job into a sealed memfd, to be sent with KindWelcome. The caller
// closes the file.
func ShareProcs(procs *startup.Procs) (*os.File, error) {
	return sealed("impi-procs", procs.Table())
}

// MapProcs maps a memfd of ShareProcs. The memory is never unmapped.
func MapProcs(f *os.File) (startup.Procs, error) {
	mem, err := mapProcs(f)
	if err != nil {
		return startup.Procs{}, fmt.Errorf("table of procs: %w", err)
	}
	procs, err := startup.OpenProcs(mem)
	if err != nil {
		return procs, errors.Join(fmt.Errorf("%w: %w", ErrMessage, err), unix.Munmap(mem))
	}
	return procs, nil
}

func mapProcs(f *os.File) ([]byte, error) {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0) // first: until it is sealed its size may change
	if want := unix.F_SEAL_SHRINK | unix.F_SEAL_WRITE; err != nil || seals&want != want {
		return nil, errors.Join(fmt.Errorf("it can be changed, with seals %#x: %w", seals, ErrMessage), err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < 1 || st.Size() > int64(startup.TableLimit) {
		return nil, fmt.Errorf("%d bytes: %w", st.Size(), ErrMessage)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return mem, nil
}

// newTable checks the views of procs. It takes them over.
func newTable(procs startup.Procs, views []View) (*Table, error) {
	t := &Table{procs: procs, views: views, data: make([]int, len(views))}
	if len(views) == 0 || views[0].First != 0 {
		return nil, fmt.Errorf("views of procs: none of rank 0: %w", ErrMessage)
	}
	for i := range views {
		v := &views[i]
		if i > 0 && v.First <= views[i-1].First || int(v.First) >= procs.Len() || !slices.Contains(paths[:], v.Path) || v.Unexpected < 0 {
			return nil, fmt.Errorf("views of procs: rank %d of %d: path %q, %d bytes of unexpected messages: %w", v.First, procs.Len(), v.Path, v.Unexpected, ErrMessage)
		}
		t.data[i] = slices.IndexFunc(views, func(w View) bool { return w.Data == v.Data })
	}
	return t, nil
}

var paths = [...]Path{PathSelf, PathDirect, PathChannel, PathNative}

// AddView appends to views how the host sees p and the procs after it, of ranks from first on. Of
// procs that are seen alike it is enough to add the first one.
func AddView(views []View, first wire.WorldRank, p Proc) []View {
	v := View{first, p.Path, p.Data, p.Foreign, p.ReduceOnPointToPoint, p.Unexpected, p.Allows}
	if n := len(views); n > 0 {
		last := views[n-1]
		if last.First = first; last == v {
			return views
		}
	}
	return append(views, v)
}

func (t *Table) view(r wire.WorldRank) int {
	return sort.Search(len(t.views), func(i int) bool { return t.views[i].First > r }) - 1
}

// Size returns the number of procs.
func (t *Table) Size() int { return t.procs.Len() }

// Identity returns host and pid of the proc with world rank r, as packets have them.
func (t *Table) Identity(r int) wire.Proc { return t.procs.At(wire.WorldRank(r)).ID }

// Find returns the world rank of a proc.
func (t *Table) Find(id wire.Proc) (r int, known bool) {
	rank, _, known := t.procs.Find(id)
	return int(rank), known
}

// Data returns a number that is the same for procs of the same Data. There are as many as views at
// most.
func (t *Table) Data(r int) int { return t.data[t.view(wire.WorldRank(r))] }

// Proc returns what is known of a proc. It allocates nothing: Host is not to be changed.
func (t *Table) Proc(r int) Proc {
	rank := wire.WorldRank(r)
	run := t.procs.Run(rank)
	p := seen(&t.views[t.view(rank)], &run)
	p.PID, p.Machine = t.Identity(r).PID, dynamic.NodeOf(run.Card)
	return p
}

// seen puts together what is known of the first proc of a run, but for its Machine, which takes
// time.
func seen(v *View, x *startup.ProcRun) Proc {
	return Proc{
		Host: x.Address, PID: x.ID.PID, Client: x.Client, Node: x.Host,
		Path: v.Path, Data: v.Data, Foreign: v.Foreign, ReduceOnPointToPoint: v.ReduceOnPointToPoint, Unexpected: v.Unexpected, Allows: v.Allows,
	}
}

// Runs yields the runs by ascending rank. It allocates nothing for them.
func (t *Table) Runs() iter.Seq[ProcRun] {
	return func(yield func(ProcRun) bool) {
		k := 0
		for x := range t.procs.Runs() {
			for x.N > 0 {
				for k+1 < len(t.views) && t.views[k+1].First <= x.First {
					k++
				}
				n := x.N
				if k+1 < len(t.views) {
					n = min(n, int(t.views[k+1].First-x.First))
				}
				if !yield(ProcRun{First: x.First, N: n, Proc: seen(&t.views[k], &x)}) {
					return
				}
				if x.First, x.N = x.First+wire.WorldRank(n), x.N-n; x.N > 0 {
					x.ID = t.Identity(int(x.First))
				}
			}
		}
	}
}
