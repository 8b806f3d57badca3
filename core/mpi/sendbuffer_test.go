package mpi

import (
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// TestSendBuffers attaches memory to a communicator, to several and to all, and looks
// whose a send takes.
func TestSendBuffers(t *testing.T) {
	layout{procs: 2, dataLen: 64, ackMark: 1, hiWater: 2}.run(t, func(_ *testing.T, world *Comm) error {
		c, err := world.Dup()
		if err != nil {
			return err
		}
		const n = 1000
		if c.Rank() == 1 {
			if err := second(Recv(world, []byte{0}, 0, 9)); err != nil {
				return err
			}
			buf := make([]byte, n)
			for range 3 {
				err = first(err, second(Recv(c, buf, 0, 1)))
			}
			return first(err, c.Free())
		}
		shared := (*SendBuffer)(c.in().Process().SendBuffer())
		own, err := c.SendBuffer()
		full := func(what string) error {
			return class(what, Bsend(c, make([]byte, n), 1, 1), mpierr.Buffer)
		}
		err = first(err, shared.Serve(c), full("none"),
			c.in().Process().AttachedBuffer().Attach(n+BsendOverhead), Bsend(c, make([]byte, n), 1, 1), full("that of all"),
			shared.Attach(n+BsendOverhead), Bsend(c, make([]byte, n), 1, 1), full("shared"), class("WORLD's", Bsend(world, make([]byte, n), 1, 1), mpierr.Buffer),
			own.Attach(Unlimited), class("twice", own.Attach(1), mpierr.Buffer), Bsend(c, make([]byte, n), 1, 1))
		q := own.Iflush()
		done, _, bad := q.Test()
		err = first(err, bad, expect("flushed", done, false), Send(world, []byte{1}, 1, 9), second(q.Wait()), own.Flush(), shared.Flush(), c.in().Process().AttachedBuffer().Flush())
		a, err1 := own.Detach()
		b, err2 := shared.Detach()
		d, err3 := c.in().Process().AttachedBuffer().Detach()
		err = first(err, err1, err2, err3, expect("own", a, Unlimited), expect("shared", b, n+BsendOverhead), expect("that of all", d, n+BsendOverhead))
		a, err1 = own.Detach()
		return first(err, err1, expect("nothing", a, 0), c.Free(), class("freed", second(c.SendBuffer()), mpierr.Comm))
	})
}
