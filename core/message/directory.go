package message

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// Directory numbers the procs of a job. It does not change, so that all engines of a
// program may share one, from any goroutine. Nothing else in this package grows with the
// size of the job.
type Directory struct {
	procs  []wire.Proc
	byProc map[wire.Proc]Peer
}

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

// Len is the number of procs.
func (d *Directory) Len() int { return len(d.procs) }

// Proc returns the identity of a peer, which must be below Len.
func (d *Directory) Proc(p Peer) wire.Proc { return d.procs[p] }

// Find returns the number of a proc.
func (d *Directory) Find(proc wire.Proc) (p Peer, known bool) {
	p, known = d.byProc[proc]
	return p, known
}
