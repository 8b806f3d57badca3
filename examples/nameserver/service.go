package main

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errKey     = errors.New("the communicator has no name server")
	errRequest = errors.New("a request that the server does not know")
)

// The messages of clients to the server: a name, or stop.
const (
	tagAsk = iota
	tagAnswer
	stop = -1
)

// service is what all procs keep of the name server: the communicator in which
// groups are joined, and the one between the server and its clients. It is cached
// on the communicator that the server was made for.
type service struct {
	world  *mpi.Comm // rank 0 is the server, the others are its clients in this order
	server *mpi.Comm // intercommunicator of the server and its clients
}

var key = mpi.KeyvalInvalid

// newService makes rank 0 of c the name server of the others. All members call it.
func newService(c *mpi.Comm) error {
	if key == mpi.KeyvalInvalid {
		var err error
		if key, err = mpi.CreateKeyval(nil, endService, nil); err != nil {
			return err
		}
	}
	world, err := c.Dup()
	if err != nil {
		return err
	}
	leads, other := 0, 1
	if c.Rank() > 0 {
		leads, other = 1, 0
	}
	side, err := c.Split(leads, 0)
	if err != nil {
		return err
	}
	server, err := side.IntercommCreate(0, world, other, 0)
	if err != nil {
		return err
	}
	return errors.Join(side.Free(), c.SetAttr(key, &service{world, server}))
}

// endService is the delete callback: it frees the service.
func endService(_ *mpi.Comm, _ mpi.Keyval, value, _ any) error {
	s := value.(*service)
	return errors.Join(s.server.Free(), s.world.Free())
}

func serviceOf(c *mpi.Comm) (*service, error) {
	value, ok, err := c.Attr(key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errKey
	}
	return value.(*service), nil
}

// serve answers the leaders of groups, two of which send the same name, until one sends
// stop. It returns how many pairs there were.
func (s *service) serve() (pairs int, err error) {
	waiting := map[int]int{} // clients that wait, by name
	for {
		name := []int{0}
		st, err := mpi.Recv(s.server, name, mpi.AnySource, tagAsk)
		if err != nil {
			return pairs, err
		}
		if name[0] == stop {
			return pairs, s.refuse(waiting)
		}
		first, ok := waiting[name[0]]
		if !ok {
			waiting[name[0]] = st.Source
			continue
		}
		delete(waiting, name[0])
		pairs++
		// In world the clients come after the server.
		if err := mpi.Send(s.server, []int{st.Source + 1}, first, tagAnswer); err != nil {
			return pairs, err
		}
		if err := mpi.Send(s.server, []int{first + 1}, st.Source, tagAnswer); err != nil {
			return pairs, err
		}
	}
}

func (s *service) refuse(waiting map[int]int) error {
	for _, client := range waiting {
		if err := mpi.Send(s.server, []int{stop}, client, tagAnswer); err != nil {
			return err
		}
	}
	return nil
}

// ask returns the rank in world of the other leader that sends the same name.
func (s *service) ask(name int) (leader int, err error) {
	if name < 0 {
		return 0, fmt.Errorf("%w: name %d", errRequest, name)
	}
	if err := mpi.Send(s.server, []int{name}, 0, tagAsk); err != nil {
		return 0, err
	}
	answer := []int{0}
	_, err = mpi.Recv(s.server, answer, 0, tagAnswer)
	return answer[0], err
}

func (s *service) end() error { return mpi.Send(s.server, []int{stop}, 0, tagAsk) }

// meet joins the group of local with the group that calls it with the same name. The leader
// of local asks the server.
func (s *service) meet(local *mpi.Comm, name int) (*mpi.Comm, error) {
	leader := []int{0}
	if local.Rank() == 0 {
		var err error
		if leader[0], err = s.ask(name); err != nil {
			return nil, err
		}
	}
	if err := mpi.Bcast(local, leader, 0); err != nil {
		return nil, err
	}
	if leader[0] == stop {
		return nil, fmt.Errorf("%w: nobody else is called %d", errRequest, name)
	}
	return local.IntercommCreate(0, s.world, leader[0], name)
}
