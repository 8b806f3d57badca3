package mpi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
)

// other is a member that runs another MPI: it knows nothing but messages.
type other struct {
	p *proc.Process
	t construct.Exchange
}

// as has c's proc play another MPI that uses a context.
func as(c *Comm, context wire.ContextID, tag wire.Tag) other {
	t := construct.NewExchange(c.in(), 0, tag)
	t.Self.Context = context
	return other{c.in().Process(), t}
}

// sends sends big-endian numbers of a width to a rank.
func (o other) sends(rank, width int, values ...uint64) error {
	var b []byte
	for _, v := range values {
		b = append(b, binary.BigEndian.AppendUint64(nil, v)[8-width:]...)
	}
	o.p.Lock()
	defer o.p.Unlock()
	_, err := o.t.Done(o.t.Isend(rank, b))
	return err
}

// gets expects big-endian numbers from a rank.
func (o other) gets(rank, width int, values ...uint64) error {
	var want []byte
	for _, v := range values {
		want = append(want, binary.BigEndian.AppendUint64(nil, v)[8-width:]...)
	}
	b := make([]byte, 64)
	o.p.Lock()
	defer o.p.Unlock()
	n, err := o.t.Done(o.t.Irecv(rank, b))
	if err == nil && !bytes.Equal(b[:n], want) {
		err = fmt.Errorf("rank %d has sent %x, want %x", rank, b[:n], want)
	}
	return err
}

// strangers are two sites of two procs each, the second of which is another MPI,
// and an intercommunicator between them whose contexts are 8 and 9.
func strangers(t *testing.T, ours, theirs func(c, inter *Comm) error) {
	t.Helper()
	l := foreignLayout(4)
	l.client = func(r int) int { return r / 2 }
	l.data = func(from, to int) string {
		if from/2 == to/2 {
			return ""
		}
		return "external32"
	}
	l.run(t, func(t *testing.T, c *Comm) error {
		local, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		if local.Context() != 4 || inter.Context() != 6 {
			return fmt.Errorf("contexts %d and %d", local.Context(), inter.Context())
		}
		if c.Rank() < 2 {
			return ours(c, inter)
		}
		return theirs(c, inter)
	})
}

// IMPI ch.4, Intercomm_merge: tag 220 on the context of collectives; non-leaders
// tell the remote leader their maximum, leaders swap {maximum, high}, and tell
// the remote non-leaders {maximum, own high}.
func TestMergeOnTheWire(t *testing.T) {
	strangers(t, func(c, inter *Comm) error {
		d, err := inter.Merge(true)
		if err != nil {
			return err
		}
		g, err := d.Group()
		return errors.Join(is("members", c, g, err, 2, 3, 0, 1), expect("context", d.Context(), 1001), expect("maximum", c.in().Process().Comms.Contexts.Max(), 1002))
	}, func(c, inter *Comm) error {
		o := as(inter, inter.Context()+1, 220)
		if inter.Rank() == 1 {
			return errors.Join(o.sends(0, 8, 1000), o.gets(0, 8, 1000, 1))
		}
		return errors.Join(o.gets(1, 8, 9), o.sends(0, 8, 12, 0), o.gets(0, 8, 1000, 1), o.sends(1, 8, 1000, 0))
	})
}

// Dup of an intercommunicator is as the first step of that, with tag 210.
func TestIntercommDupOnTheWire(t *testing.T) {
	strangers(t, func(c, inter *Comm) error {
		d, err := inter.Dup()
		return errors.Join(err, expect("context", d.Context(), 101), expect("private one", d.Comm.Local().Context(), 103))
	}, func(c, inter *Comm) error {
		o := as(inter, inter.Context()+1, 210)
		if inter.Rank() == 1 {
			return errors.Join(o.sends(0, 8, 17), o.gets(0, 8, 100))
		}
		return errors.Join(o.gets(1, 8, 9), o.sends(0, 8, 100), o.gets(0, 8, 17), o.sends(1, 8, 100))
	})
}

// Leaders of an intercommunicator in the making tell each other {maximum, size}
// and their world ranks on the peer communicator, with the program's tag.
func TestIntercommCreateOnTheWire(t *testing.T) {
	strangers(t, func(c, _ *Comm) error {
		local, err := c.Split(0, 0) // the others take part in this
		if err != nil {
			return err
		}
		half, err := local.Split(c.Rank()/2, 0)
		if err != nil {
			return err
		}
		inter, err := half.IntercommCreate(1, c, 2, 33)
		if err != nil {
			return err
		}
		g, err := inter.RemoteGroup()
		return errors.Join(is("remote group", c, g, err, 3, 2), expect("context", inter.Context(), 501))
	}, func(c, _ *Comm) error {
		local, err := c.Split(0, 0)
		if err != nil {
			return err
		}
		if _, err = local.Split(c.Rank()/2, 0); err != nil || c.Rank() == 3 {
			return err
		}
		o := as(c, c.Context(), 33)
		return errors.Join(o.gets(1, 8, 13, 2), o.sends(1, 8, 500, 2), o.gets(1, 4, 0, 1), o.sends(1, 4, 3, 2))
	})
}

// Constructors of intracommunicators are an Allreduce of one Uint8.
func TestDupIsAnAllreduceOfOneNumber(t *testing.T) {
	l := foreignLayout(2)
	l.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 0 {
			d, err := c.Dup()
			return errors.Join(err, expect("context", d.Context(), 78))
		}
		// IMPI ch.4, Allreduce: Reduce to rank 0, tag 190, then Bcast, tag 120.
		return errors.Join(as(c, 1, 190).sends(0, 8, 77), as(c, 1, 120).gets(0, 8, 77))
	})
}

// Out of contexts is an error of all members, and nothing is used twice.
func TestOutOfContexts(t *testing.T) {
	for name, client := range clientsOf {
		t.Run(name, func(t *testing.T) {
			layout{procs: 4, client: client}.run(t, func(t *testing.T, c *Comm) error {
				if c.Rank() == 3 { // only one member knows of the last ID
					o := c.in().Process().Comms.Contexts.BeginAgreement(true)
					last := o
					last.Max = 1<<63 - 6
					if _, err := c.in().Process().Comms.Contexts.Conclude(o, last, 2); err != nil {
						return err
					}
				}
				for range 2 {
					_, err := c.Dup()
					if err == nil {
						return errors.New("a context beyond the last")
					}
				}
				_, err := c.Split(0, 0)
				if err == nil {
					return errors.New("a context beyond the last, by Split")
				}
				return talks(c, c, 0, 1, 2, 3)
			})
		})
	}
}

// What other MPIs cannot do is an error of all of ours, before anything is sent.
func TestForeignConstructors(t *testing.T) {
	foreignLayout(4).run(t, func(t *testing.T, c *Comm) error {
		_, inter, err := halves(c, 2)
		if err != nil {
			return err
		}
		own, err := inter.Group()
		if err != nil {
			return err
		}
		_, errSplit := inter.Split(0, 0)
		_, errCreate := inter.Create(own)
		if !errors.Is(errSplit, ErrForeign) || !errors.Is(errCreate, ErrForeign) {
			return fmt.Errorf("%v and %v", errSplit, errCreate)
		}
		d, q, err := inter.Idup()
		return errors.Join(err, expect("request", q.Null(), true), d.Check(), inter.Free(), d.Disconnect())
	})
}
