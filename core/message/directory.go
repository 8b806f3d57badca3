package message

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// Directory maps the procs of a job to numbers. It does not change, so that all engines of a
// program may share one, from any goroutine. Nothing else in this package grows with the size of
// the job.
type Directory struct {
	procs  []wire.Proc
	byProc map[wire.Proc]Peer
	from   Procs // used instead of the other fields
}

// Procs is a table of a job's procs outside of this package. It does not change, and no proc is in
// it twice.
type Procs interface {
	// Size returns the number of procs.
	Size() int
	// Identity returns the identity of a proc, by its number, which is below Size.
	Identity(number int) wire.Proc
	// Find returns the number of a proc; known is false if it is not in the table.
	Find(proc wire.Proc) (number int, known bool)
}

// DirectoryOf returns a directory that looks up all procs in a table, and keeps no copy of them.
func DirectoryOf(s Procs) *Directory { return &Directory{from: s} }

// NewDirectory makes the directory in which procs[i] is Peer(i). It keeps procs, which must
// not change any more. If a proc is listed twice the error is ErrConfig.
func NewDirectory(procs []wire.Proc) (*Directory, error) {
	d := &Directory{procs: procs, byProc: make(map[wire.Proc]Peer, len(procs))}
	for i, proc := range procs {
		if p, known := d.byProc[proc]; known {
			return nil, fmt.Errorf("%w: ranks %d and %d are both proc %s", ErrConfig, p, i, proc)
		}
		d.byProc[proc] = Peer(i)
	}
	return d, nil
}

// Len returns the number of procs.
func (d *Directory) Len() int {
	if d.from != nil {
		return d.from.Size()
	}
	return len(d.procs)
}

// Proc returns the identity of a peer, which must be below Len.
func (d *Directory) Proc(p Peer) wire.Proc {
	if d.from != nil {
		return d.from.Identity(int(p))
	}
	return d.procs[p]
}

// Find returns the number of a proc; known is false if it is not in the directory.
func (d *Directory) Find(proc wire.Proc) (p Peer, known bool) {
	if d.from != nil {
		n, known := d.from.Find(proc)
		return Peer(n), known
	}
	p, known = d.byProc[proc]
	return p, known
}
