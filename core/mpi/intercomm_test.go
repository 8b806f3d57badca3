package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/meet"
)

// halves makes an intercommunicator of the lower and the upper ranks of c: the
// first n are on the left.
func halves(c *Comm, n int) (local, inter *Comm, err error) {
	left := c.Rank() < n
	color, remote := 0, n
	if !left {
		color, remote = 1, 0
	}
	if local, err = c.Split(color, 0); err != nil {
		return nil, nil, err
	}
	inter, err = local.IntercommCreate(0, c, remote, 12)
	return local, inter, err
}

// joins checks that an intercommunicator has these ranks of world on the caller's
// and on the other side, and that both sides can talk.
func joins(world, inter *Comm, local, remote []int) error {
	if inter == nil {
		return fmt.Errorf("no intercommunicator, want %v and %v", local, remote)
	}
	near, err1 := inter.Group()
	far, err2 := inter.RemoteGroup()
	n, err3 := inter.RemoteSize()
	flag, err4 := inter.TestInter()
	if err := errors.Join(is("local group", world, near, err1, local...), is("remote group", world, far, err2, remote...),
		err3, err4, expect("remote size", n, len(remote)), expect("inter", flag, true), expect("size", inter.Size(), len(local))); err != nil {
		return err
	}
	// Everybody sends its rank to all on the other side.
	var open []Request
	for r := range remote {
		q, err := Isend(inter, []int64{int64(inter.Rank())}, r, 5)
		if err != nil {
			return err
		}
		open = append(open, q)
	}
	for range remote {
		got := []int64{-1}
		st, err := Recv(inter, got, AnySource, AnyTag)
		if err := errors.Join(err, expect("remote rank", int(got[0]), st.Source)); err != nil {
			return err
		}
	}
	return errors.Join(Waitall(open, nil), classed("rank beyond the other side", Send(inter, []byte{1}, len(remote), 0), mpierr.Rank))
}

func sides(c *Comm, left, right []int) (local, remote []int) {
	for _, r := range left {
		if r == c.Rank() {
			return left, right
		}
	}
	return right, left
}

func TestIntercommCreate(t *testing.T) {
	everywhere(t, 6, func(t *testing.T, c *Comm) error {
		_, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		local, remote := sides(c, []int{0, 1}, []int{2, 3, 4, 5})
		return errors.Join(joins(c, inter, local, remote), inter.Free(), classed("free again", inter.Free(), mpierr.Comm))
	})
}

// Leaders are any members, and nobody else is asked for the peer.
func TestIntercommCreateOfOtherLeaders(t *testing.T) {
	everywhere(t, 6, func(t *testing.T, c *Comm) error {
		local, err := c.Split(c.Rank()%2, -c.Rank()) // 4 2 0 and 5 3 1
		if err != nil {
			return err
		}
		leader, remote := 1, 5 // ranks 2 and 5 of c
		if c.Rank()%2 == 1 {
			leader, remote = 0, 2
		}
		var peer *Comm
		if local.Rank() == leader {
			peer = c
		} else {
			remote = -77
		}
		inter, err := local.IntercommCreate(leader, peer, remote, 40)
		if err != nil {
			return err
		}
		near, far := sides(c, []int{4, 2, 0}, []int{5, 3, 1})
		return joins(c, inter, near, far)
	})
}

// The peer communicator may be an intercommunicator, whose remote ranks count.
func TestIntercommCreateOverAnIntercommunicator(t *testing.T) {
	layout{procs: 5, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		local, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		leader, remote := 1, 2 // left: rank 1 there talks to rank 2 of the right
		if c.Rank() >= 2 {
			leader, remote = 2, 1
		}
		other, err := local.IntercommCreate(leader, inter, remote, 9)
		near, far := sides(c, []int{0, 1}, []int{2, 3, 4})
		return errors.Join(err, joins(c, other, near, far))
	})
}

// What only a leader can see is an error of all of its side.
func TestIntercommCreateErrorsOfLeaders(t *testing.T) {
	everywhere(t, 4, func(t *testing.T, c *Comm) error {
		var all []error
		for _, leader := range []int{0, 2} {
			for _, x := range []struct {
				what   string
				peer   *Comm
				remote int
				want   mpierr.Class
			}{
				{"remote leader 9", c, 9, mpierr.Rank},
				{"remote leader -1", c, -1, mpierr.Rank},
			} {
				d, err := c.IntercommCreate(leader, x.peer, x.remote, 1)
				want := x.want
				if c.Rank() != leader && !meet.JobRunsImpi(c.in().Process()) {
					want = mpierr.Other // other MPIs can be told only that there are no contexts
				}
				all = append(all, classed(x.what, err, want), expect("communicator", d, nil))
			}
		}
		freed, err := c.Dup()
		all = append(all, err, freed.Free())
		_, err = c.IntercommCreate(0, freed, 1, 1)
		if c.Rank() == 0 || meet.JobRunsImpi(c.in().Process()) {
			all = append(all, classed("freed peer", err, mpierr.Comm))
		}
		return errors.Join(append(all,
			classed("local leader 4", second(c.IntercommCreate(4, c, 0, 1)), mpierr.Rank),
			classed("local leader -1", second(c.IntercommCreate(-1, c, 0, 1)), mpierr.Rank),
			classed("tag -1", second(c.IntercommCreate(0, c, 0, -1)), mpierr.Tag),
			classed("any tag", second(c.IntercommCreate(0, c, 0, AnyTag)), mpierr.Tag))...)
	})
}

// Groups that overlap are found out by both sides, all members of which are told.
func TestIntercommCreateOfOverlappingGroups(t *testing.T) {
	layout{procs: 5, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		world, _ := c.Group()
		left, err1 := world.Incl([]int{0, 1, 2})
		right, err2 := world.Incl([]int{4, 3, 2})
		a, err3 := c.Create(left)
		b, err4 := c.Create(right)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return err
		}
		errs := make(chan error, 2)
		try := func(d *Comm, remote int) {
			if d == nil {
				errs <- nil
				return
			}
			_, err := d.IntercommCreate(0, c, remote, 3)
			errs <- classed("overlap", err, mpierr.Comm)
		}
		go try(a, 4)
		go try(b, 0)
		return errors.Join(<-errs, <-errs)
	})
}

// A pending receive of anything on the peer communicator does not take what the
// leaders say to each other.
func TestIntercommCreateBesideAWildcard(t *testing.T) {
	layout{procs: 4, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		got := []byte{0}
		q, err := Irecv(c, got, AnySource, AnyTag)
		if err != nil {
			return err
		}
		_, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		near, far := sides(c, []int{0, 1}, []int{2, 3})
		if err := errors.Join(joins(c, inter, near, far), Send(c, []byte{7}, (c.Rank()+1)%4, 12)); err != nil {
			return err
		}
		_, err = q.Wait()
		return errors.Join(err, expect("what the receive got", got[0], 7))
	})
}

func TestIntercommDup(t *testing.T) {
	everywhere(t, 5, func(t *testing.T, c *Comm) error {
		_, inter, err := halves(c, 3)
		if err != nil {
			return err
		}
		near, far := sides(c, []int{0, 1, 2}, []int{3, 4})
		d, err := inter.Dup()
		if err != nil {
			return err
		}
		e, q, err := inter.Idup()
		if err != nil {
			return err
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
		how, err := d.Compare(inter)
		other, err2 := e.Compare(c)
		return errors.Join(err, err2, expect("comparison", how, Congruent), expect("with an intracommunicator", other, Unequal),
			joins(c, d, near, far), joins(c, e, near, far), joins(c, inter, near, far), d.Free(), e.Free())
	})
}

func TestIntercommCreateOfParts(t *testing.T) {
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) {
			layout{procs: 6, client: client}.run(t, func(t *testing.T, c *Comm) error {
				_, inter, err := halves(c, 3)
				if err != nil {
					return err
				}
				world, _ := c.Group()
				part := func(left, right []int) (*Comm, error) {
					mine := left
					if c.Rank() >= 3 {
						mine = right
					}
					g, err := world.Incl(mine)
					if err != nil {
						return nil, err
					}
					return inter.Create(g)
				}
				first, err := part([]int{0}, []int{5, 3, 4}) // the first of the left with all of the right
				if err != nil {
					return err
				}
				if r := c.Rank(); r == 1 || r == 2 {
					err = expect("communicator of a stranger", first, nil)
				} else {
					near, far := sides(c, []int{0}, []int{5, 3, 4})
					err = joins(c, first, near, far)
				}
				none, err2 := part([]int{0, 1, 2}, nil)
				_, wrong := part([]int{0, 4}, []int{3})
				return errors.Join(err, err2, expect("communicator with nobody on one side", none, nil),
					classed("a process of the other group", wrong, mpierr.Group))
			})
		})
	}
}

func TestIntercommSplit(t *testing.T) {
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) {
			layout{procs: 7, client: client}.run(t, func(t *testing.T, c *Comm) error {
				_, inter, err := halves(c, 5)
				if err != nil {
					return err
				}
				// Clients 0 to 4 choose a server; servers 5 and 6 give their own rank.
				color := inter.Rank() % 2
				if c.Rank() >= 5 {
					color = inter.Rank()
				}
				d, err := inter.Split(color, -c.Rank())
				if err != nil {
					return err
				}
				clients, server := []int{4, 2, 0}, []int{5}
				if color == 1 {
					clients, server = []int{3, 1}, []int{6}
				}
				near, far := sides(c, clients, server)
				if err := joins(c, d, near, far); err != nil {
					return err
				}
				// A colour that only one side has, and none.
				color = c.Rank()
				if color == 2 || color == 6 {
					color = 1
				} else if color == 4 {
					color = Undefined
				}
				e, err := inter.Split(color, 0)
				if err != nil {
					return err
				}
				if color != 1 {
					return expect("colour of one side", e, nil)
				}
				near, far = sides(c, []int{1, 2}, []int{6})
				return joins(c, e, near, far)
			})
		})
	}
}

func TestMerge(t *testing.T) {
	everywhere(t, 5, func(t *testing.T, c *Comm) error {
		_, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		left := c.Rank() < 2
		for _, x := range []struct {
			left, right bool
			want        []int
		}{
			{false, true, []int{0, 1, 2, 3, 4}}, {true, false, []int{2, 3, 4, 0, 1}},
			{true, true, []int{0, 1, 2, 3, 4}}, {false, false, []int{0, 1, 2, 3, 4}},
		} {
			high := x.right
			if left {
				high = x.left
			}
			d, err := inter.Merge(high)
			if err != nil {
				return err
			}
			if err := talks(c, d, x.want...); err != nil {
				return fmt.Errorf("high %v and %v: %w", x.left, x.right, err)
			}
		}
		return nil
	})
}

// Equal ones are ordered by the leaders' ranks in World, not by who calls.
func TestMergeOfEquals(t *testing.T) {
	everywhere(t, 4, func(t *testing.T, c *Comm) error {
		local, err := c.Split(c.Rank()%2, -c.Rank()) // 2 0 and 3 1
		if err != nil {
			return err
		}
		inter, err := local.IntercommCreate(0, c, 3-c.Rank()%2, 0)
		if err != nil {
			return err
		}
		d, err := inter.Merge(true)
		return errors.Join(err, talks(c, d, 2, 0, 3, 1))
	})
}

func TestMergeOfMembersThatDisagree(t *testing.T) {
	layout{procs: 5, client: func(r int) int { return r / 2 }}.run(t, func(t *testing.T, c *Comm) error {
		_, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		_, err = inter.Merge(c.Rank() == 4)
		if err := classed("one of three says high", err, mpierr.Arg); err != nil {
			return err
		}
		d, err := inter.Merge(c.Rank() < 2)
		return errors.Join(err, talks(c, d, 2, 3, 4, 0, 1))
	})
}

// The messages of a communicator that is not made here yet are kept.
func TestMessagesBeforeTheCommunicator(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		d, q, err := c.Idup()
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if _, err := q.Wait(); err != nil {
				return err
			}
			return errors.Join(Send(d, []byte{9}, 1, 4), Send(c, []byte{8}, 1, 4))
		}
		b := []byte{0}
		if _, err := Recv(c, b, 0, 4); err != nil { // d's message has come before
			return err
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
		_, err = Recv(d, b, 0, 4)
		return errors.Join(err, expect("message", b[0], 9))
	})
}
