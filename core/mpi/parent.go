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
	p.lock()
	x := p.procedure(toSpawn)
	p.unlock()
	x.took(int(spawnTell), func() string {
		return fmt.Sprintf("started, %v of %d procs, which all are there", p.member(p.self.Self()), p.world.Size())
	})
	x.took(int(spawnTellHow), func() string { return "the parents are at " + portLabelOf(p.job.Parent) })
	c, err := p.world.connect(p.job.Parent, nil, 0, toConnect)
	if err != nil {
		err = fmt.Errorf("%w: the parents do not answer: %w", ErrSpawn, err)
		x.ends(err, nil)
		return err
	}
	x.took(int(spawnConnect), func() string { return "connected with the parents" })
	c.name.set("MPI_COMM_PARENT")
	p.parent.Store(c)
	x.took(int(spawnClose), func() string { return "Init returns" })
	return nil
}
