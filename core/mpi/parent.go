package mpi

import "fmt"

// Parent gives the intercommunicator with those who have spawned this proc's world
// (MPI_Comm_get_parent): its remote group are the members of the communicator that
// they called Spawn on. It is the same at each call, and nil in a proc that nobody has
// spawned, or once it was freed or disconnected.
func Parent() *Comm {
	p, err := current()
	if err != nil {
		return nil
	}
	return p.parents()
}

// Parent is the function Parent for this rank.
func (x *Proc) Parent() *Comm { return x.p.parents() }

func (p *process) parents() *Comm {
	if c := p.parent.Load(); c != nil && c.life.Load() == usable {
		return c
	}
	return nil
}

// findParents connects the world to the one that has spawned it, before anything else
// is done in it. All its procs do so.
func (p *process) findParents() error {
	if p.job.Parent == "" {
		return nil
	}
	c, err := p.world.connect(p.job.Parent, nil, 0, true)
	if err != nil {
		return fmt.Errorf("%w: the parents do not answer: %w", ErrSpawn, err)
	}
	c.name.set("MPI_COMM_PARENT")
	p.parent.Store(c)
	return nil
}
