package script

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
)

func (s Spawn) check(c *comms) error {
	total := 0
	for _, n := range s.Procs {
		if n < 1 || n > maxProcs {
			return fmt.Errorf("a command of %d procs", n)
		}
		total += n
	}
	world := c.of(s.World)
	switch {
	case len(s.Procs) == 0 || s.Hosts != nil && len(s.Hosts) != len(s.Procs):
		return errors.New("it has no command, or not as many hosts as commands")
	case s.Fails > ProcEnds || (s.Fails == Nothing) != (world != nil):
		return errors.New("it spawns a world, or fails")
	case s.Fails == NoHost && len(s.Procs) != 1:
		return errors.New("what finds no host has one command")
	case world != nil && len(world[0].members) != total:
		return fmt.Errorf("%d procs, and world %s has %d", total, s.World, len(world[0].members))
	}
	return nil
}

// total counts the procs of all commands.
func (s Spawn) total() (n int) {
	for _, k := range s.Procs {
		n += k
	}
	return n
}

// Program returns the name of the first command's program.
func (s Spawn) Program() string {
	if s.Fails != Nothing {
		return s.Fails.String()
	}
	return s.World
}

// Spawned returns the step that spawns a world; spawned is false if there is none.
func (p *Program) Spawned(world int) (s Spawn, spawned bool) {
	for _, step := range p.Steps {
		if s, ok := step.(Spawn); ok && s.World == string(rune('a'+world)) {
			return s, true
		}
	}
	return s, false
}

func (p *Program) spawnsAgain(proc int) bool {
	s, spawned := p.Spawned(p.WorldOf(proc))
	for _, step := range slices.Backward(p.Steps) {
		x, ok := step.(Spawn)
		switch {
		case !spawned || ok && x.World == s.World:
			return false
		case ok && x.Root == s.Root:
			return true
		}
	}
	return false
}

// SlotUse tells whether a world has its procs' slots when another one is spawned.
type SlotUse uint8

// The answers.
const (
	MayHold SlotUse = iota // it depends on timing
	Holds
	Ends // it has them, or is about to give them back
)

// SlotUseOf returns the Hold of the world of spawn s when another one, step i, is spawned. Spawns
// of different roots may come in any order.
func (p *Program) SlotUseOf(s Spawn, i int) SlotUse {
	by := p.Steps[i].(Spawn)
	if by.Root != s.Root || s.World == "" {
		return MayHold
	}
	c, spawned := p.comms(), false
	for k, step := range p.Steps[:i] {
		if x, ok := step.(Spawn); ok && x.World == s.World {
			spawned = true
		}
		_, _, _ = c.apply(p.Steps[k])
	}
	world := c.byName[s.World].members
	of := func(g *group) bool { return slices.ContainsFunc(world, g.has) }
	switch {
	case !spawned:
		return MayHold
	case slices.ContainsFunc(c.all, func(g *group) bool { return g.live && of(g) && g.has(s.Root) }):
		return Holds
	case slices.ContainsFunc(p.Steps[i:], func(step Step) bool { return p.involves(step, c, world) }):
		return MayHold
	}
	return Ends
}

// involves reports whether some procs have a part in a step. c is the model some steps before.
func (p *Program) involves(s Step, c *comms, procs []int) bool {
	if f, fails := s.(Fail); fails { // the world keeps its slots until then, and its spawner waits
		g := c.byName[f.World]
		return g != nil && slices.ContainsFunc(procs, g.has)
	}
	v := reflect.ValueOf(s)
	if f := v.FieldByName("Rank"); f.IsValid() && slices.Contains(procs, int(f.Int())) {
		return true
	}
	for _, name := range []string{"Comm", "With"} {
		if f := v.FieldByName(name); f.IsValid() {
			if g := c.byName[f.String()]; g != nil && slices.ContainsFunc(procs, g.has) {
				return true
			}
		}
	}
	byID := p.index()
	return slices.ContainsFunc(messages(s), func(id int) bool {
		return slices.Contains(procs, byID[id].From) || slices.Contains(procs, byID[id].To)
	})
}

func (s Spawn) commands() (all []mpi.Command, err error) {
	for i, n := range s.Procs {
		c := mpi.Command{Path: s.Program(), Procs: n}
		if s.Hosts != nil {
			c.Info = mpi.NewInfo()
			err = errors.Join(err, c.Info.Set("host", s.Hosts[i]))
		}
		all = append(all, c)
	}
	return all, err
}

func (m *meeter) spawn(s Spawn) (*mpi.Comm, error) {
	c, codes, err := m.spawned(s)
	if err != nil {
		return nil, err
	}
	if len(codes) != s.total() || slices.ContainsFunc(codes, func(c mpi.Class) bool { return c != mpierr.Success }) {
		return nil, mismatch("the codes are %v, and all procs run", codes)
	}
	return c, nil
}

func (m *meeter) spawned(s Spawn) (*mpi.Comm, []mpi.Class, error) {
	commands, err := s.commands()
	if err != nil {
		return nil, nil, err
	}
	g := m.comms.byName[s.Comm]
	return m.open[s.Comm].SpawnMultiple(commands, g.rank(s.Root))
}

// number checks that a spawned proc runs the command that its rank says.
func (m *meeter) number(s Spawn) error {
	_, rank := m.comms.worldOf(m.me)
	want := 0
	for ; rank >= s.Procs[want]; want++ {
		rank -= s.Procs[want]
	}
	v, ok, err := m.env.World().Attr(mpi.AppNum)
	if n, _ := v.(int); err != nil || !ok || n != want {
		return mismatch("MPI_APPNUM is %v, want %d: %v", v, want, err)
	}
	return nil
}

// refused is the part of one of the parents in a spawn that must fail. All of them get the reason.
func (m *meeter) refused(s Spawn) error {
	if !m.comms.byName[s.Comm].has(m.me) {
		return nil
	}
	m.log(s)
	c, codes, err := m.spawned(s)
	if c != nil || mpi.ErrorClass(err) != mpierr.Spawn {
		return mismatch("a spawn that fails ends with %v: %v", mpi.ErrorClass(err), err)
	}
	if len(codes) != s.total() || slices.ContainsFunc(codes, func(c mpi.Class) bool { return c != mpierr.Spawn && (c != mpierr.Other || len(s.Procs) == 1) }) {
		return mismatch("the codes are %v, and no proc runs", codes)
	}
	return nil
}
