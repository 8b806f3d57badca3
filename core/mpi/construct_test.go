package mpi

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/proc"
)

// clientsOf are layouts of one, of two and of three sites, in blocks and not.
var clientsOf = map[string]func(rank int) int{
	"one site":        nil,
	"two sites":       func(r int) int { return r / 3 },
	"three, in turns": func(r int) int { return r % 3 },
}

// everywhere runs a body on jobs of several shapes, in the last of which each site is
// another MPI to the other, so that IMPI's algorithms are used.
func everywhere(t *testing.T, procs int, body func(t *testing.T, c *Comm) error) {
	t.Helper()
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) { layout{procs: procs, client: client}.run(t, body) })
	}
	t.Run("three forms", func(t *testing.T) { threeForms(procs).run(t, body) })
	t.Run("another MPI", func(t *testing.T) { foreignLayout(procs).run(t, body) })
}

// threeForms is a job of three sites of ours, each two of which exchange data in a form of
// their own.
func threeForms(procs int) layout {
	client := func(r int) int { return r % 3 }
	return layout{procs: procs, client: client, data: func(from, to int) string {
		return [][]string{{"", "external32", "native-le"}, {"external32", "", "native-be"}, {"native-le", "native-be", ""}}[client(from)][client(to)]
	}}
}

// foreignLayout is a job whose sites are another MPI to each other, and exchange external32.
func foreignLayout(procs int) layout {
	client := func(r int) int { return r % 2 }
	return layout{procs: procs, client: client, foreign: true, data: func(from, to int) string {
		if client(from) == client(to) {
			return ""
		}
		return "external32"
	}}
}

// talks checks that c's members are those of world with these ranks, in this
// order, and that they can talk to each other.
func talks(world, c *Comm, want ...int) error {
	if c == nil {
		return fmt.Errorf("no communicator, want ranks %v", want)
	}
	g, err := c.Group()
	if err := errors.Join(err, is("members", world, g, err, want...)); err != nil {
		return err
	}
	sum, next, n := []int64{int64(world.Rank())}, (c.Rank()+1)%c.Size(), 0
	for _, r := range want {
		n += r
	}
	if err := Allreduce(c, nil, sum, Sum); err != nil {
		return err
	}
	got := []int64{0}
	st, err := Sendrecv(c, []int64{int64(c.Rank())}, next, 3, got, AnySource, 3)
	before := (c.Rank() + c.Size() - 1) % c.Size()
	return errors.Join(err, expect("sum of world ranks", int(sum[0]), n), expect("neighbour", int(got[0]), before), expect("source", st.Source, before))
}

func TestDupIsCongruent(t *testing.T) {
	everywhere(t, 6, func(t *testing.T, c *Comm) error {
		c.SetName("the original")
		d, err := c.Dup()
		if err != nil {
			return err
		}
		how, err := c.Compare(d)
		self, err2 := d.Compare(d)
		return errors.Join(err, err2, expect("comparison", how, Congruent), expect("with itself", self, Identical),
			expect("name", d.Name(), ""), talks(c, d, 0, 1, 2, 3, 4, 5), d.Free())
	})
}

func TestCreateOfOneGroup(t *testing.T) {
	everywhere(t, 6, func(t *testing.T, c *Comm) error {
		world, _ := c.Group()
		g, err := world.Incl([]int{5, 0, 3})
		if err != nil {
			return err
		}
		d, err := c.Create(g)
		if err != nil {
			return err
		}
		if !slices.Contains([]int{5, 0, 3}, c.Rank()) {
			return expect("communicator of a stranger", d, nil)
		}
		return talks(c, d, 5, 0, 3)
	})
}

// MPI-2.2: members of different groups give each their own, or the empty one.
func TestCreateOfDisjointGroups(t *testing.T) {
	everywhere(t, 6, func(t *testing.T, c *Comm) error {
		world, _ := c.Group()
		parts := [][]int{{4, 0}, {1, 5, 3}, {}}
		mine := map[int]int{4: 0, 0: 0, 1: 1, 5: 1, 3: 1, 2: 2}[c.Rank()]
		g, err := world.Incl(parts[mine])
		if err != nil {
			return err
		}
		d, err := c.Create(g)
		if err != nil || mine == 2 {
			return errors.Join(err, expect("communicator of the empty group", mine == 2 && d != nil, false))
		}
		return talks(c, d, parts[mine]...)
	})
}

// CreateGroup is no business of those that are not in the group, at the same time
// by several goroutines.
func TestCreateGroup(t *testing.T) {
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) {
			layout{procs: 6, client: client}.run(t, func(t *testing.T, c *Comm) error {
				world, _ := c.Group()
				if c.Rank() == 2 {
					g, _ := world.Incl([]int{0, 1})
					d, err := c.CreateGroup(g, 1)
					return errors.Join(err, expect("communicator of a stranger", d, nil))
				}
				errs := make(chan error)
				for tag, ranks := range [][]int{{0, 1, 3, 4, 5}, {5, 4, 3, 1, 0}, {3, 0, 4, 1, 5}} {
					go func() {
						g, err := world.Incl(ranks)
						if err != nil {
							errs <- err
							return
						}
						d, err := c.CreateGroup(g, tag)
						if err == nil {
							err = talks(c, d, ranks...)
						}
						errs <- err
					}()
				}
				return errors.Join(<-errs, <-errs, <-errs)
			})
		})
	}
	foreignLayout(4).run(t, func(t *testing.T, c *Comm) error {
		world, _ := c.Group()
		own, _ := world.RangeIncl([]Range{{First: c.Rank() % 2, Last: 3, Stride: 2}})
		d, err := c.CreateGroup(own, 7) // each site for itself
		if err == nil {
			err = talks(c, d, c.Rank()%2, c.Rank()%2+2)
		}
		return errors.Join(err, classed("with another MPI", second(c.CreateGroup(world, 7)), mpierr.UnsupportedOperation))
	})
}

// TestCreateGroupOverlapping: rank 1 is ahead with a group of its own and rank 0, in
// which it has the rank that 3 has in the group that rank 0 makes first.
func TestCreateGroupOverlapping(t *testing.T) {
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) {
			layout{procs: 4, client: client}.run(t, func(t *testing.T, c *Comm) error {
				if c.Rank() == 3 { // not before rank 1 has told rank 0
					if _, err := Recv(c, []byte{0}, 0, 1); err != nil {
						return err
					}
				} else if c.Rank() == 0 {
					c.waitAhead()
					if err := Send(c, []byte{0}, 3, 1); err != nil {
						return err
					}
				}
				return errors.Join(makeGroup(c, 0, 3), makeGroup(c, 0, 1))
			})
		})
	}
}

// makeGroup makes a communicator of a group of c, of whose members it is one.
func makeGroup(c *Comm, ranks ...int) error {
	if !slices.Contains(ranks, c.Rank()) {
		return nil
	}
	world, _ := c.Group()
	g, err := world.Incl(ranks)
	if err != nil {
		return err
	}
	d, err := c.CreateGroup(g, 1)
	if err != nil {
		return err
	}
	return talks(c, d, ranks...)
}

// waitAhead waits for a message of CreateGroup that nobody is waiting for.
func (c *Comm) waitAhead() {
	c.in().Process().Lock()
	defer c.in().Process().Unlock()
	for {
		for x := range c.in().Process().Eng.Pending() {
			if x.What == "message" && x.Env.Rank >= construct.ByTagBase {
				return
			}
		}
		c.in().Process().AwaitProgress()
	}
}

func TestSplitRows(t *testing.T) {
	everywhere(t, 6, func(t *testing.T, c *Comm) error {
		for _, x := range []struct {
			what   string
			colors []int
			keys   []int
			want   map[int][]int
		}{
			{"equal keys keep the order", []int{0, 1, 0, 1, 0, 1}, []int{7, 7, 7, 7, 7, 7}, map[int][]int{0: {0, 2, 4}, 1: {1, 3, 5}}},
			{"negative keys", []int{3, 3, 3, 3, 3, 3}, []int{0, -1, -2, -3, -4, -5}, map[int][]int{3: {5, 4, 3, 2, 1, 0}}},
			{"ties by rank", []int{0, 0, 0, 9, 9, 9}, []int{1, 0, 1, 2, 2, -9}, map[int][]int{0: {1, 0, 2}, 9: {5, 3, 4}}},
			{"some undefined", []int{Undefined, 2, 2, Undefined, 2, 4}, []int{0, 0, -5, 0, 0, 0}, map[int][]int{2: {2, 1, 4}, 4: {5}}},
			{"each for itself", []int{5, 4, 3, 2, 1, 0}, []int{0, 0, 0, 0, 0, 0}, map[int][]int{5: {0}, 4: {1}, 3: {2}, 2: {3}, 1: {4}, 0: {5}}},
			{"nobody", []int{Undefined, Undefined, Undefined, Undefined, Undefined, Undefined}, []int{0, 0, 0, 0, 0, 0}, nil},
			{"all as they are", []int{1, 1, 1, 1, 1, 1}, []int{0, 1, 2, 3, 4, 5}, map[int][]int{1: {0, 1, 2, 3, 4, 5}}},
		} {
			color := x.colors[c.Rank()]
			d, err := c.Split(color, x.keys[c.Rank()])
			if err != nil {
				return fmt.Errorf("%s: %w", x.what, err)
			}
			if color == Undefined {
				if d != nil {
					return fmt.Errorf("%s: a communicator of no colour", x.what)
				}
				continue
			}
			if err := talks(c, d, x.want[color]...); err != nil {
				return fmt.Errorf("%s: %w", x.what, err)
			}
		}
		return nil
	})
}

// Few members of one site tell each other their choices in rounds that bring some of them twice;
// more than 64 send them to rank 0.
func TestSplitOfAnySize(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 64, 65} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			layout{procs: n}.run(t, func(t *testing.T, c *Comm) error {
				colors := min(n, 3)
				d, err := c.Split(c.Rank()%colors, -c.Rank())
				if err != nil {
					return err
				}
				var want []int
				for r := n - 1; r >= 0; r-- {
					if r%colors == c.Rank()%colors {
						want = append(want, r)
					}
				}
				return errors.Join(talks(c, d, want...), d.Free())
			})
		})
	}
}

// One member's bad colour is an error of all, and what comes next works.
func TestSplitWithABadColour(t *testing.T) {
	layout{procs: 5, client: func(r int) int { return r / 3 }}.run(t, func(t *testing.T, c *Comm) error {
		for bad := range 5 {
			color := 0
			if c.Rank() == bad {
				color = -7
			}
			d, err := c.Split(color, 0)
			if err := errors.Join(classed("colour -7", err, mpierr.Arg), expect("communicator", d, nil)); err != nil {
				return err
			}
		}
		d, err := c.Split(0, 0)
		return errors.Join(err, talks(c, d, 0, 1, 2, 3, 4))
	})
}

func TestSplitType(t *testing.T) {
	layout{procs: 6, client: func(r int) int { return r / 3 }}.run(t, func(t *testing.T, c *Comm) error {
		d, err := c.SplitType(CommTypeShared, -c.Rank(), nil)
		if err != nil {
			return err
		}
		want := []int{2, 1, 0}
		if c.Rank() >= 3 {
			want = []int{5, 4, 3}
		}
		for _, kind := range []int{Undefined, CommTypeHWUnguided} {
			if d, err := c.SplitType(kind, 0, nil); d != nil || err != nil {
				return fmt.Errorf("type %d: %v, %v", kind, d, err)
			}
		}
		return errors.Join(talks(c, d, want...), classed("type 7", second(c.SplitType(7, 0, nil)), mpierr.Arg))
	})
}

// Machines that sites share are known by name.
func TestSplitTypeAcrossSites(t *testing.T) {
	l := layout{procs: 4, client: func(r int) int { return r % 2 }}
	procs := l.start(t)
	errs := make(chan error)
	for _, p := range procs {
		for r := range p.Job.Procs {
			p.Job.Procs[r].Machine = map[bool]string{true: "a", false: "b"}[r == 0 || r == 3]
			p.Job.Procs[r].Node = wire.HostRank(r)
		}
		go func() {
			d, err := (*Comm)(p.Comms.World).SplitType(CommTypeShared, 0, nil)
			want := []int{0, 3}
			if r := (*Comm)(p.Comms.World).Rank(); r == 1 || r == 2 {
				want = []int{1, 2}
			}
			if err == nil {
				err = talks((*Comm)(p.Comms.World), d, want...)
			}
			errs <- errors.Join(err, life.FinalizeProc(p))
		}()
	}
	for range procs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestConstructorErrors(t *testing.T) {
	layout{procs: 3}.run(t, func(t *testing.T, c *Comm) error {
		world, _ := c.Group()
		low, _ := world.Incl([]int{0, 1})
		part, err := c.Create(low)
		if err != nil {
			return err
		}
		gone, _ := world.Incl([]int{0})
		freed, err := c.Dup()
		if err := errors.Join(err, gone.Free(), freed.Free()); err != nil {
			return err
		}
		var all []error
		check := func(what string, err error, want mpierr.Class) { all = append(all, classed(what, err, want)) }
		check("create of nil", second(c.Create(nil)), mpierr.Group)
		check("create of a freed group", second(c.Create(gone)), mpierr.Group)
		check("create_group of nil", second(c.CreateGroup(nil, 0)), mpierr.Group)
		check("create_group with tag -1", second(c.CreateGroup(world, -1)), mpierr.Tag)
		if part != nil {
			check("group that is no part", second(part.Create(world)), mpierr.Group)
			check("create_group of no part", second(part.CreateGroup(world, 0)), mpierr.Group)
		}
		all = append(all, refused(freed, c, world)...)
		for _, d := range []*Comm{c, selfOf(c)} {
			check("free of what is predefined", d.Free(), mpierr.Comm)
			check("disconnect of it", d.Disconnect(), mpierr.Comm)
		}
		check("merge of an intracommunicator", second(c.Merge(true)), mpierr.Comm)
		check("remote size of it", second(c.RemoteSize()), mpierr.Comm)
		check("remote group of it", second(c.RemoteGroup()), mpierr.Comm)
		return errors.Join(append(all, talks(c, c, 0, 1, 2))...)
	})
}

// refused is what is not refused of a communicator that cannot be used.
func refused(d, c *Comm, world *Group) (all []error) {
	check := func(what string, err error, want mpierr.Class) { all = append(all, classed(what, err, want)) }
	_, _, idup := d.Idup()
	check("dup", second(d.Dup()), mpierr.Comm)
	check("idup", idup, mpierr.Comm)
	check("dup_with_info", second(d.DupWithInfo(nil)), mpierr.Comm)
	check("split", second(d.Split(0, 0)), mpierr.Comm)
	check("split_type", second(d.SplitType(CommTypeShared, 0, nil)), mpierr.Comm)
	check("create", second(d.Create(world)), mpierr.Comm)
	check("create_group", second(d.CreateGroup(world, 0)), mpierr.Comm)
	check("intercomm_create", second(d.IntercommCreate(0, c, 1, 0)), mpierr.Comm)
	check("merge", second(d.Merge(false)), mpierr.Comm)
	check("free", d.Free(), mpierr.Comm)
	check("disconnect", d.Disconnect(), mpierr.Comm)
	check("group", second(d.Group()), mpierr.Comm)
	check("compare", second(d.Compare(c)), mpierr.Comm)
	check("compare with it", second(c.Compare(d)), mpierr.Comm)
	check("test_inter", second(d.TestInter()), mpierr.Comm)
	check("remote_size", second(d.RemoteSize()), mpierr.Comm)
	check("remote_group", second(d.RemoteGroup()), mpierr.Comm)
	check("set_name", d.SetName("x"), mpierr.Comm)
	check("set_info", d.SetInfo(NewInfo()), mpierr.Comm)
	check("get_info", second(d.GetInfo()), mpierr.Comm)
	check("send", Send(d, []byte{1}, 0, 0), mpierr.Comm)
	check("receive", second(Recv(d, []byte{1}, AnySource, 0)), mpierr.Comm)
	check("check", d.Check(), mpierr.Comm)
	return all
}

// MPI_COMM_NULL is refused by everything.
func TestConstructorsOfNil(t *testing.T) {
	p := layout{}.start(t)[0]
	proc.ProcessMu.Lock()
	proc.ThisProcess = p
	proc.ProcessMu.Unlock()
	defer func() {
		proc.ProcessMu.Lock()
		proc.ThisProcess = nil
		proc.ProcessMu.Unlock()
	}()
	world, err := (*Comm)(p.Comms.World).Group()
	if err := errors.Join(append(refused(nil, (*Comm)(p.Comms.World), world), err)...); err != nil {
		t.Error(err)
	}
	var none *Comm
	if none.Size() != 0 || none.Rank() != Undefined || none.Name() != "MPI_COMM_NULL" {
		t.Errorf("rank %d of %d in %q", none.Rank(), none.Size(), none.Name())
	}
}

func selfOf(c *Comm) *Comm { return (*Comm)(c.in().Process().Comms.Self) }

// Members that call different constructors all hear of it, and can go on. With
// IMPI_CHECK that is so in any case.
func TestDifferentConstructors(t *testing.T) {
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) {
			l := layout{procs: 6, client: client}
			procs := l.start(t)
			for _, p := range procs {
				p.Check = true
			}
			l.finish(t, procs, func(t *testing.T, c *Comm) error {
				world, err := c.Group()
				if err != nil {
					return err
				}
				_, inter, err := halves(c, 3)
				if err != nil {
					return err
				}
				calls := []func(c *Comm) error{
					func(c *Comm) error { return second(c.Dup()) },
					func(c *Comm) error { return second(c.Split(0, 0)) },
					func(c *Comm) error { return second(c.Create(world)) },
					func(c *Comm) error {
						_, q, err := c.Idup()
						if err == nil {
							_, err = q.Wait()
						}
						return err
					},
				}
				for odd := range c.Size() {
					for a := range calls {
						for b := range calls {
							call := calls[a]
							if odd == c.Rank() {
								call = calls[b]
							}
							if err := call(c); (err == nil) != (a == b) {
								return fmt.Errorf("%d calls %d, the others %d: %v", odd, b, a, err)
							}
						}
					}
					call := func(c *Comm) error { return second(c.Merge(false)) }
					if odd == c.Rank() {
						call = calls[0]
					}
					if call(inter) == nil {
						return fmt.Errorf("%d calls Dup, the others Merge", odd)
					}
				}
				return errors.Join(talks(c, c, 0, 1, 2, 3, 4, 5), calls[0](inter))
			})
		})
	}
}
