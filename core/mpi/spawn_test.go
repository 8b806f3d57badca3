package mpi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// spawnNode is a node that spawns: a world of testNodes.
type spawnNode struct {
	gate
	t        *testing.T
	refuses  wireup.OtherWorld // what it answers instead, if it has a class
	deserted bool              // the procs start and do not call
	children sync.WaitGroup

	mu    sync.Mutex
	heard []wireup.Message // about spawns
}

func (b *spawnNode) Send(m wireup.Message) error {
	if m.Kind == wireup.KindAccept && b.deserted && !m.Meeting.Cancel {
		b.answer(wireup.KindAccepted, wireup.OtherWorld{Request: m.Meeting.Request, Class: int(mpierr.Spawn)}, "they ended")
		return nil
	}
	if m.Kind != wireup.KindSpawn && m.Kind != wireup.KindDisconnect {
		return b.gate.Send(m)
	}
	b.mu.Lock()
	b.heard = append(b.heard, m)
	b.mu.Unlock()
	if m.Kind == wireup.KindDisconnect || m.Meeting.Cancel {
		return nil
	}
	x := b.refuses
	if x.Class == 0 {
		for _, c := range m.Meeting.Spawn.Commands {
			x.Codes = append(x.Codes, make([]int, c.Procs)...)
		}
		if !b.deserted {
			b.breed(len(x.Codes), m.Meeting.Port)
		}
	}
	x.Request = m.Meeting.Request
	b.answer(wireup.KindSpawned, x, "no room")
	return nil
}

func (b *spawnNode) answer(kind wireup.Kind, x wireup.OtherWorld, reason string) {
	m := wireup.Message{Kind: kind, Meeting: &x}
	if x.Class != 0 {
		m.Reason = reason
	}
	b.m.procs[b.me].Node.HandleMessage(m, nil)
}

// breed starts children that greet their parents and leave them.
func (b *spawnNode) breed(n int, port string) {
	procs := b.m.world(b.t, "children", n)
	for _, p := range procs {
		p.Job.Parent = port
	}
	b.children.Go(func() {
		apiece(b.t, [][]*proc.Process{procs}, func(_ int, c *Comm) error {
			if err := meet.FindParents(c.in().Process()); err != nil {
				return err
			}
			x := Proc{c.in().Process()}
			parents := x.Parent()
			size, err := parents.RemoteSize()
			if err := errors.Join(err, expect("name", parents.Name(), "MPI_COMM_PARENT"), expect("parents", size, 2),
				expect("the same handle", x.Parent(), parents), everyoneSends(parents), parents.Disconnect()); err != nil {
				return err
			}
			return expect("parents that are left", x.Parent(), (*Comm)(nil))
		})
	})
}

// told returns what a spawnNode has heard of that kind.
func (b *spawnNode) told(kind wireup.Kind) (list []wireup.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.heard), func(m wireup.Message) bool { return m.Kind != kind })
}

// family is a world of two procs, whose rank 1 has a node that spawns.
func family(t *testing.T) (*testNodes, []*proc.Process, *spawnNode) {
	m := newTestNodes()
	procs := m.world(t, "parents", 2)
	b := &spawnNode{t: t, gate: *procs[1].Node.Control.(*gate)}
	procs[1].Node.Control = b
	return m, procs, b
}

func TestSpawn(t *testing.T) {
	_, procs, b := family(t)
	apiece(t, [][]*proc.Process{procs}, func(_ int, c *Comm) error {
		var commands []Command // not to be looked at where it does not matter
		if c.Rank() == 1 {
			info := NewInfo()
			_ = info.Set("wdir", "/tmp")
			commands = []Command{{Path: "./a", Args: []string{"x"}, Procs: 2, Info: info}, {Path: "b", Procs: 1}}
		}
		children, codes, err := c.SpawnMultiple(commands, 1)
		if err != nil {
			return err
		}
		n, err := children.RemoteSize()
		if err := errors.Join(err, expect("children", n, 3), expect("codes", fmt.Sprint(codes), "[MPI_SUCCESS MPI_SUCCESS MPI_SUCCESS]"), everyoneSends(children)); err != nil {
			return err
		}
		if len(b.told(wireup.KindDisconnect)) > 0 {
			return errors.New("parted too early")
		}
		return children.Disconnect()
	})
	b.children.Wait()
	order, parted := b.told(wireup.KindSpawn), b.told(wireup.KindDisconnect)
	if len(order) != 1 || len(parted) != 1 || parted[0].Meeting.Request != order[0].Meeting.Request {
		t.Fatalf("the node has heard %d orders, %d partings", len(order), len(parted))
	}
	if c := order[0].Meeting.Spawn.Commands; len(c) != 2 || c[0].Path != "./a" || c[0].Args[0] != "x" || c[0].Info["wdir"] != "/tmp" || c[1].Procs != 1 {
		t.Errorf("%+v", c)
	}
	if len(procs[1].Node.PortKeys) != 0 {
		t.Error("the port is open")
	}
	if (&Proc{procs[0]}).Parent() != nil {
		t.Error("who was not spawned has parents")
	}
}

func TestSpawnFails(t *testing.T) {
	freed := NewInfo()
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	good := []Command{{Path: "a", Procs: 2}}
	for _, tt := range []struct {
		name     string
		commands []Command
		refuses  wireup.OtherWorld
		deserted bool
		class    Class
		codes    string
		cancels  int
	}{
		{name: "no command", class: mpierr.Arg, codes: "[]"},
		{name: "no path", commands: []Command{{Procs: 1}}, class: mpierr.Arg, codes: "[]"},
		{name: "no procs", commands: []Command{{Path: "a"}}, class: mpierr.Arg, codes: "[]"},
		{name: "too many", commands: []Command{{Path: "a", Procs: meet.MaxSpawned}, {Path: "a", Procs: 1}}, class: mpierr.Arg, codes: "[]"},
		{name: "a zero byte", commands: []Command{{Path: "a", Procs: 1, Args: []string{"\x00"}}}, class: mpierr.Arg, codes: "[]"},
		{name: "freed info", commands: []Command{{Path: "a", Procs: 1, Info: freed}}, class: mpierr.Info, codes: "[]"},
		{name: "refused", commands: good, refuses: wireup.OtherWorld{Class: int(mpierr.Spawn), Codes: []int{0, int(mpierr.Spawn)}},
			class: mpierr.Spawn, codes: "[MPI_SUCCESS MPI_ERR_SPAWN]", cancels: 1},
		{name: "deserted", commands: good, deserted: true, class: mpierr.Spawn, codes: "[MPI_SUCCESS MPI_SUCCESS]", cancels: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, procs, b := family(t)
			b.refuses, b.deserted = tt.refuses, tt.deserted
			apiece(t, [][]*proc.Process{procs}, func(_ int, c *Comm) error {
				commands := []Command{{Path: "not to be looked at", Procs: -1}}
				if c.Rank() == 1 {
					commands = tt.commands
				}
				children, codes, err := c.SpawnMultiple(commands, 1)
				if children != nil || ErrorClass(err) != tt.class || fmt.Sprint(codes) != tt.codes {
					return fmt.Errorf("%v, codes %v, class %v, error %w; want class %v, codes %s", children, codes, ErrorClass(err), err, tt.class, tt.codes)
				}
				if tt.refuses.Class != 0 && !strings.Contains(err.Error(), "no room") {
					return fmt.Errorf("without the reason: %w", err)
				}
				return Barrier(c)
			})
			cancels := 0
			for _, m := range b.told(wireup.KindSpawn) {
				if m.Meeting.Cancel {
					cancels++
				}
			}
			if cancels != tt.cancels || len(procs[1].Node.PortKeys) != 0 {
				t.Errorf("%d were ended, %d ports are open", cancels, len(procs[1].Node.PortKeys))
			}
		})
	}
}

// TestParentsDoNotAnswer has children whose parents' port is closed.
func TestParentsDoNotAnswer(t *testing.T) {
	m, procs, _ := family(t)
	port, err := meet.OpenPort(procs[0], nil)
	if err := errors.Join(err, meet.ClosePort(procs[0], port)); err != nil {
		t.Fatal(err)
	}
	children := m.world(t, "orphans", 2)
	apiece(t, [][]*proc.Process{children}, func(_ int, c *Comm) error {
		c.in().Process().Job.Parent = port
		if err := meet.FindParents(c.in().Process()); ErrorClass(err) != mpierr.Spawn {
			return fmt.Errorf("class %v: %w", ErrorClass(err), err)
		}
		return expect("parents", (&Proc{c.in().Process()}).Parent(), (*Comm)(nil))
	})
}
