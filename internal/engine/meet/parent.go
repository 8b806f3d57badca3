package meet

import (
	"fmt"

	"github.com/openimpi/impi/internal/engine/proc"
)

// Parent returns the intercommunicator with the parents of this proc's world (MPI-4.1, 11.8.2). It
// is nil if the world was not spawned, outside of Init and Finalize, and after a Disconnect.
func Parent() *proc.Comm {
	p, err := proc.Current()
	if err != nil {
		return nil
	}
	return Parents(p)
}

// Parents is Parent for a process of a program that has several.
func Parents(p *proc.Process) *proc.Comm {
	if c := p.Comms.Parent.Load(); c != nil && c.State().Life.Load() == proc.Usable {
		return c
	}
	return nil
}

// FindParents connects a spawned world to the world of its parents (MPI-4.1, 11.8.2). All procs
// call it in Init, before they communicate otherwise.
func FindParents(p *proc.Process) error {
	if p.Job.Parent == "" {
		return nil
	}
	p.Lock()
	x := p.Trace.Procedure(proc.ToSpawn)
	p.Unlock()
	x.TraceStep(int(spawnTell), func() string {
		return fmt.Sprintf("started, %v of %d procs, which all are there", p.Worlds.Member(p.Comms.Self.Self()), p.Comms.World.Size())
	})
	x.TraceStep(int(spawnTellHow), func() string { return "the parents are at " + proc.PortLabelOf(p.Job.Parent) })
	c, err := Connect(p.Comms.World, p.Job.Parent, nil, 0, proc.ToConnect)
	if err != nil {
		err = fmt.Errorf("%w: the parents do not answer: %w", proc.ErrSpawn, err)
		x.TraceEnd(err, nil)
		return err
	}
	x.TraceStep(int(spawnConnect), func() string { return "connected with the parents" })
	c.State().Name.Set("MPI_COMM_PARENT")
	p.Comms.Parent.Store(c)
	x.TraceStep(int(spawnClose), func() string { return "Init returns" })
	return nil
}
