package mpi

import "testing"

// TestFigures wants what is counted to follow what is done.
func TestFigures(t *testing.T) {
	layout{procs: 2, check: true}.run(t, func(_ *testing.T, c *Comm) error {
		before := c.in().Process().Figures()
		err := first(expect("check", before.Check, true), expect("packet data", before.PacketData, 64<<10),
			expect("ack mark", before.AckMark, 4), expect("hiwater", before.HiWater, 8), expect("links", before.Links, 1))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for range 3 {
				err = first(err, Send(c, make([]byte, 1000), 1, 1))
			}
			after := c.in().Process().Figures()
			return first(err, expect("messages", after.Messages-before.Messages, 3), expect("more bytes", after.Sent >= before.Sent+3000, true),
				second(Recv(c, []byte{0}, 1, 2)))
		}
		b := make([]byte, 1000)
		if _, err := Probe(c, 0, 1); err != nil {
			return err
		}
		q, err := Irecv(c, []byte{0}, 0, 9)
		if err != nil {
			return err
		}
		now := c.in().Process().Figures()
		err = first(expect("unexpected", now.Unexpected > 0, true), expect("posted", now.Posted, before.Posted+1), q.Cancel(), second(q.Wait()))
		for range 3 {
			err = first(err, second(Recv(c, b, 0, 1)))
		}
		now = c.in().Process().Figures()
		return first(err, expect("unexpected", now.Unexpected, 0), expect("more bytes", now.Received >= before.Received+3000, true),
			expect("completed", now.Completed >= before.Completed+4, true), Send(c, []byte{1}, 0, 2))
	})
}
