package interpreter

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

func (in *interpreter) communicator(word string, a *arguments) (string, error) {
	c := in.comm(a, "comm")
	var made *mpi.Comm
	var err error
	switch word {
	case "dup":
		made, err = c.Dup()
	case "split":
		color := a.num("color", 0)
		if color < 0 {
			color = mpi.Undefined
		}
		made, err = c.Split(color, a.num("key", 0))
	case "create":
		made, err = create(c, a.list("ranks"))
	case "intercomm":
		made, err = c.IntercommCreate(a.num("leader", 0), in.comm(a, "peer"), a.num("remote", 0), a.num("tag", 0))
	case "merge":
		made, err = c.Merge(a.num("high", 0) != 0)
	case "free":
		err = c.Free()
		delete(in.comms, a.num("comm", 0))
		return "", err
	default:
		return "", errUnknown
	}
	switch {
	case err != nil:
		return "", err
	case made == nil:
		return " member=0", nil
	}
	in.comms[a.num("new", 0)] = made
	return fmt.Sprintf(" member=1 rank=%d size=%d", made.Rank(), made.Size()), nil
}

func create(c *mpi.Comm, ranks []int) (*mpi.Comm, error) {
	g, err := c.Group()
	if err != nil {
		return nil, err
	}
	part, err := g.Incl(ranks)
	if err != nil {
		return nil, err
	}
	return c.Create(part)
}
