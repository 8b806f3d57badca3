package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// TestPrivateContextsOfWorlds has one proc of two worlds be busy with an agreement of
// its own all the time, so that all communicators of both worlds get private IDs. They
// are drawn from so few that some are in use already.
func TestPrivateContextsOfWorlds(t *testing.T) {
	m, name := newTestNodes(), make(chan string, 1)
	worlds := [][]*proc.Process{m.world(t, "a", 3), m.world(t, "b", 2)}
	for _, procs := range worlds {
		for _, p := range procs {
			p.Comms.Contexts.SetWorld(p.Worlds.Description.World, 4)
		}
	}
	busy := worlds[1][1]
	busy.Comms.Contexts.BeginAgreement(false)
	apiece(t, worlds, func(w int, c *Comm) error {
		var ids []wire.ContextID
		private := func(d *Comm, err error) (*Comm, error) {
			switch {
			case err != nil || d == nil:
				return d, err
			case d.Context() < comm.WideLimit:
				return d, fmt.Errorf("context %x is of one world", uint64(d.Context()))
			case slices.Contains(ids, d.Context()):
				return d, fmt.Errorf("context %x is given twice", uint64(d.Context()))
			}
			ids = append(ids, d.Context())
			return d, nil
		}
		inter, err := private(rendezvous(c, w == 0, 0, name))
		if err != nil {
			return err
		}
		dup, err1 := private(inter.Dup())
		split, err2 := private(inter.Split(0, -c.Rank()))
		merged, err3 := private(inter.Merge(w == 1))
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		part, err1 := private(merged.Split(merged.Rank()%2, 0))
		again, q, err2 := merged.Idup()
		_, err3 = q.Wait()
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		_, err1 = private(again, nil)
		sum := []int64{0}
		err = errors.Join(err1, everyoneSends(dup), everyoneSends(split), Allreduce(again, []int64{1}, sum, Sum), expect("members", sum[0], 5),
			Allreduce(part, []int64{1}, sum, Sum), expect("members of a part", sum[0], int64(3-merged.Rank()%2)))
		none, err1 := merged.Split(Undefined, 0)
		err = errors.Join(err, err1, expect("no communicator", none == nil, true), part.Free(), again.Free(), merged.Free(), split.Free(), dup.Disconnect(), inter.Disconnect())
		c.in().Process().Lock()
		defer c.in().Process().Unlock()
		return errors.Join(err, expect("claimed IDs", c.in().Process().Comms.Contexts.Claimed(), 0))
	})
}
