package main

import (
	"errors"
	"os"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpi"
)

// partner is a spawned proc, in a world of its own, with which rank 0 connects.
type partner struct {
	*mpi.Comm // to the partner
	port      string
}

func takePartner() (*partner, error) {
	port, err := mpi.OpenPort(nil)
	if err != nil {
		return nil, err
	}
	c, err := spawnPartners(1)
	if err != nil {
		return nil, err
	}
	return &partner{c, port}, mpi.Send(c, []byte(port), 0, tagData)
}

func spawnPartners(procs int) (*mpi.Comm, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, _, err := mpi.Self().Spawn(mpi.Command{Path: self, Args: []string{partnerWord}, Procs: procs}, 0)
	return c, err
}

func (p *partner) connect(n int64) error {
	if err := mpi.Send(p.Comm, []int64{n}, 0, tagNext); err != nil {
		return err
	}
	for range n {
		if err := part(mpi.Self().Accept(p.port, nil, 0)); err != nil {
			return err
		}
	}
	return nil
}

func (p *partner) leave() error {
	if err := mpi.Send(p.Comm, []int64{0}, 0, tagNext); err != nil {
		return err
	}
	return errors.Join(p.Disconnect(), mpi.ClosePort(p.port))
}

func part(c *mpi.Comm, err error) error {
	if err != nil {
		return err
	}
	return c.Disconnect()
}

// spawn starts n worlds of w.size procs, one after the other, which disconnect at once.
func (w *worker) spawn(n int64) error {
	for range n {
		c, err := spawnPartners(w.size)
		if err != nil {
			return err
		}
		for r := range w.size {
			if err := mpi.Send(c, []byte(nil), r, tagData); err != nil {
				return err
			}
		}
		if err := c.Disconnect(); err != nil {
			return err
		}
	}
	return nil
}

// runPartner is the program of a spawned proc. An empty port tells it to end.
func runPartner() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	parent := mpi.Parent()
	if parent == nil {
		return errors.New("this process has no parent: only impi-bench starts it")
	}
	port := make([]byte, dynamic.MaxPortName)
	s, err := mpi.Recv(parent, port, 0, tagData)
	if err != nil {
		return err
	}
	if s.Bytes() > 0 {
		if err := followConnects(parent, string(port[:s.Bytes()])); err != nil {
			return err
		}
	}
	if err := parent.Disconnect(); err != nil {
		return err
	}
	return mpi.Finalize()
}

// followConnects connects as often as the parent says, until the parent says zero.
func followConnects(parent *mpi.Comm, port string) error {
	for n := []int64{0}; ; {
		if _, err := mpi.Recv(parent, n, 0, tagNext); err != nil || n[0] == 0 {
			return err
		}
		for range n[0] {
			if err := part(mpi.Self().Connect(port, nil, 0)); err != nil {
				return err
			}
		}
	}
}
