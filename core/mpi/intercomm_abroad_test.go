package mpi

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
)

// TestIntercommCreateOfWorlds has one proc of each of two worlds connect, and then all
// of both join by these two: most of them have not heard of the other world before.
func TestIntercommCreateOfWorlds(t *testing.T) {
	m, name := newTestNodes(), make(chan string, 1)
	worlds := [][]*proc.Process{m.world(t, "a", 3), m.world(t, "b", 2)}
	leader := []int{1, 0}
	apiece(t, worlds, func(w int, c *Comm) error {
		var peer *Comm
		if c.Rank() == leader[w] {
			var err error
			if peer, err = rendezvous((*Comm)(c.in().Process().Comms.Self), w == 0, 0, name); err != nil {
				return err
			}
		}
		wrong, bad := c.IntercommCreate(leader[w], peer, 1, 5)
		want := mpierr.Rank
		err := errors.Join(classed("a leader that is none", bad, want), expect("communicator", wrong == nil, true))
		inter, err1 := c.IntercommCreate(leader[w], peer, 0, 5)
		if err = errors.Join(err, err1); err != nil {
			return err
		}
		n, _ := inter.RemoteSize()
		err = errors.Join(expect("remote size", n, len(worlds[1-w])), everyoneSends(inter))
		if peer != nil {
			err = errors.Join(err, peer.Disconnect())
		}
		dup, err1 := inter.Dup()
		if err = errors.Join(err, err1); err != nil {
			return err
		}
		relation, err1 := dup.Compare(inter)
		return errors.Join(err1, expect("relation", relation, Congruent), mergedAlike(dup, w), everyoneSends(dup), dup.Disconnect(), inter.Disconnect())
	})
	forgotten(t, worlds)
}

// mergedAlike merges an intercommunicator of two worlds. Where nobody says which one is
// to come first, all members see the same order.
func mergedAlike(inter *Comm, w int) error {
	merged, err := inter.Merge(false)
	if err != nil {
		return err
	}
	first := []int64{int64(w)}
	last := []int64{int64(w)}
	err = errors.Join(Bcast(merged, first, 0), Bcast(merged, last, merged.Size()-1), expect("the groups are apart", first[0] != last[0], true))
	all, err1 := merged.Group()
	own, err2 := inter.Group()
	theirs, err3 := inter.RemoteGroup()
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return err
	}
	both, err1 := own.Union(theirs)
	none, err2 := own.Intersection(theirs)
	rest, err3 := all.Difference(own)
	if err := errors.Join(err1, err2, err3, expect("members of both", none.Size(), 0)); err != nil {
		return err
	}
	similar, err1 := both.Compare(all)
	same, err2 := rest.Compare(theirs)
	at, err3 := theirs.Translate([]int{0}, all)
	start := 0
	if int64(w) == first[0] {
		start = inter.Size()
	}
	err = errors.Join(err1, err2, err3, expect("union", similar != Unequal, true), expect("difference", same, Identical), expect("first of theirs", at[0], start))
	return errors.Join(err, merged.Disconnect())
}

// forgotten wants that no proc remembers a world but such as it waits for to be closed.
func forgotten(t *testing.T, worlds [][]*proc.Process) {
	t.Helper()
	for w, procs := range worlds {
		for r, p := range procs {
			for _, x := range p.Worlds.Table.Load().Met {
				if !x.Leaving || x.Uses.Load() != 0 {
					t.Errorf("world %d, rank %d still knows a world", w, r)
				}
			}
			if len(p.Worlds.Early) > 0 || len(p.Worlds.Remotes) > 0 && !hasLeft(p) {
				t.Errorf("world %d, rank %d: %d early links, %d temporary links", w, r, len(p.Worlds.Early), len(p.Worlds.Remotes))
			}
		}
	}
}

// hasLeft reports whether all remote procs are only waited for.
func hasLeft(p *proc.Process) bool {
	for _, g := range p.Worlds.Remotes {
		if !g.(*meet.Remote).Unneeded {
			return false
		}
	}
	return true
}

// TestIntercommCreateOfThreeWorlds joins two worlds, merged, and a third one, which only
// one of them has met.
func TestIntercommCreateOfThreeWorlds(t *testing.T) {
	m, names := newTestNodes(), [2]chan string{make(chan string, 1), make(chan string, 1)}
	worlds := [][]*proc.Process{m.world(t, "a", 2), m.world(t, "b", 2), m.world(t, "c", 3)}
	apiece(t, worlds, func(w int, c *Comm) error {
		side := c
		if w < 2 {
			inter, err := rendezvous(c, w == 0, 0, names[0])
			if err != nil {
				return err
			}
			if side, err = inter.Merge(w == 1); err != nil {
				return err
			}
			if err := inter.Disconnect(); err != nil {
				return err
			}
		}
		var peer *Comm
		if w != 1 && c.Rank() == 0 {
			var err error
			if peer, err = rendezvous((*Comm)(c.in().Process().Comms.Self), w == 0, 0, names[1]); err != nil {
				return err
			}
		}
		inter, err := side.IntercommCreate(0, peer, 0, 9)
		if err != nil {
			return err
		}
		all, err := inter.Merge(w == 2)
		if err != nil {
			return err
		}
		sum := []int64{0}
		err = errors.Join(everyoneSends(inter), Allreduce(all, []int64{int64(w)}, sum, Sum), expect("sum of the worlds", sum[0], 2*0+2*1+3*2),
			all.Disconnect(), inter.Disconnect())
		if peer != nil {
			err = errors.Join(err, peer.Disconnect())
		}
		if w < 2 {
			err = errors.Join(err, side.Disconnect())
		}
		return err
	})
	forgotten(t, worlds)
}

// TestConnectInOneWorld has two parts of one world connect, and one proc with itself.
func TestConnectInOneWorld(t *testing.T) {
	m, name := newTestNodes(), make(chan string, 1)
	worlds := [][]*proc.Process{m.world(t, "a", 5)}
	apiece(t, worlds, func(_ int, c *Comm) error {
		part, err := c.Split(c.Rank()%2, 0)
		if err != nil {
			return err
		}
		inter, err := rendezvous(part, c.Rank()%2 == 0, 0, name)
		if err != nil {
			return err
		}
		theirs, err := inter.RemoteGroup()
		if err != nil {
			return err
		}
		all, _ := c.Group()
		ranks, err := theirs.Translate([]int{0, 1}, all)
		return errors.Join(err, expect("their ranks", [2]int(ranks), [2]int{1 - c.Rank()%2, 3 - c.Rank()%2}), everyoneSends(inter), inter.Disconnect())
	})
	if n := len(worlds[0][0].Worlds.Table.Load().Met); n != 0 {
		t.Errorf("%d worlds were met", n)
	}
	errs := make(chan error, 2)
	for i := range 2 {
		own, err := (*Comm)(worlds[0][0].Comms.Self).Dup()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := rendezvous(own, i == 0, 0, name)
			errs <- classed("a proc that connects with itself", err, mpierr.Comm) // it cannot be in both groups
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Error(err)
	}
}
