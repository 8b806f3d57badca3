package mpi

// Twin is Dup without attributes and hints, for what a library does by itself on a
// communicator of the program's. Where members run another MPI library it is nil: nobody
// there would call it. All members call it.
func (c *Comm) Twin() (*Comm, error) {
	d, err := c.twin()
	return d, c.failed("Twin", err)
}

func (c *Comm) twin() (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if !c.ours() {
		return nil, nil
	}
	return c.deriveBy(doesDup, c.Spec(), nil)
}
