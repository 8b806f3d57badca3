package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// lengths are message lengths around each limit of the jobs below.
var lengths = []int{0, 1, 7, 8, 9, 255, 4096, 8191, 8192, 8193, 64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000}

var modes = map[string]func(*Comm, []byte, int, int) error{
	"standard":    Send[byte],
	"synchronous": Ssend[byte],
	"ready":       Rsend[byte],
}

func TestEveryLengthInEveryMode(t *testing.T) {
	for _, dataLen := range []uint32{1, 8, 4096, 64 << 10} {
		for name, send := range modes {
			t.Run(fmt.Sprintf("%s/datalen=%d", name, dataLen), func(t *testing.T) {
				layout{procs: 2, dataLen: dataLen}.run(t, func(t *testing.T, c *Comm) error {
					for i, n := range lengths {
						if dataLen == 1 && n > 5000 {
							continue
						}
						if c.Rank() == 0 {
							if err := send(c, pattern(n, i), 1, i); err != nil {
								return err
							}
							continue
						}
						buf := make([]byte, n)
						st, err := Recv(c, buf, 0, i)
						if err != nil {
							return err
						}
						if !bytes.Equal(buf, pattern(n, i)) {
							return fmt.Errorf("%d bytes arrived damaged", n)
						}
						if err := first(expect("source", st.Source, 0), expect("tag", st.Tag, i), expect("bytes", st.Bytes(), int64(n))); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}

func TestInMemoryLinks(t *testing.T) {
	pair := func() (link.Link, link.Link) { return linktest.Pair(1000) }
	layout{procs: 5, dataLen: 300, link: pair}.run(t, func(t *testing.T, c *Comm) error {
		right, left := circle(c)
		in := make([]byte, 5000)
		_, err := Sendrecv(c, pattern(5000, c.Rank()), right, 1, in, left, 1)
		if err == nil && !bytes.Equal(in, pattern(5000, left)) {
			err = errors.New("damaged")
		}
		return err
	})
}

func TestMessagesOfOnePairKeepTheirOrder(t *testing.T) {
	// A short message must not overtake a long one with the same envelope.
	layout{procs: 2, dataLen: 16}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 0 {
			var reqs []Request
			for i := range 50 {
				q, err := Isend(c, pattern(1+(i%3)*40, i), 1, 5)
				if err != nil {
					return err
				}
				reqs = append(reqs, q)
			}
			return Waitall(reqs, nil)
		}
		for i := range 50 {
			buf := make([]byte, 100)
			st, err := Recv(c, buf, AnySource, AnyTag)
			if err != nil {
				return err
			}
			if want := pattern(1+(i%3)*40, i); !bytes.Equal(buf[:st.Bytes()], want) {
				return fmt.Errorf("message %d is not the %d-th that was sent", i, i)
			}
		}
		return nil
	})
}

func TestSynchronousSendWaitsForTheReceive(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 1 {
			// The token arrives after the synchronous message, which is not received yet.
			if _, err := Recv(c, make([]byte, 1), 0, 2); err != nil {
				return err
			}
			_, err := Recv(c, make([]byte, 1), 0, 1)
			return err
		}
		q, err := Issend(c, []byte{1}, 1, 1)
		if err != nil {
			return err
		}
		done, _, err := q.Test()
		if err != nil || done {
			return fmt.Errorf("complete before it was received: %v %v", done, err)
		}
		if err := Send(c, []byte{1}, 1, 2); err != nil {
			return err
		}
		_, err = q.Wait()
		return err
	})
}

func TestManyMessagesBeforeAReceive(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		const n = 10_000
		if c.Rank() == 0 {
			for i := range n {
				if err := Send(c, []int32{int32(i)}, 1, i); err != nil {
					return err
				}
			}
			return nil
		}
		// Nothing is received by tag until the last is there.
		if _, err := Probe(c, 0, n-1); err != nil {
			return err
		}
		for i := n - 1; i >= 0; i-- {
			var v [1]int32
			if _, err := Recv(c, v[:], 0, i); err != nil {
				return err
			}
			if v[0] != int32(i) {
				return fmt.Errorf("tag %d brought %d", i, v[0])
			}
		}
		return nil
	})
}

func TestTruncation(t *testing.T) {
	for _, n := range []int{20, 200} { // short and long
		layout{procs: 2, dataLen: 50}.run(t, func(t *testing.T, c *Comm) error {
			if c.Rank() == 0 {
				if err := Ssend(c, pattern(n, 1), 1, 0); err != nil {
					return fmt.Errorf("the sender noticed: %w", err)
				}
				return Send(c, []byte{42}, 1, 0)
			}
			buf := make([]byte, 10)
			st, err := Recv(c, buf, 0, 0)
			if !errors.Is(err, message.ErrTruncate) {
				return fmt.Errorf("got %w", err)
			}
			if !bytes.Equal(buf, pattern(n, 1)[:10]) || st.Bytes() != 10 {
				return fmt.Errorf("%d bytes, the buffer is not what fits", st.Bytes())
			}
			_, err = Recv(c, buf, 0, 0)
			return first(err, expect("the next message", buf[0], byte(42)))
		})
	}
}

func TestProcNull(t *testing.T) {
	layout{}.run(t, func(t *testing.T, c *Comm) error {
		if err := Send(c, []byte{1}, ProcNull, 0); err != nil {
			return err
		}
		st, err := Recv(c, []byte{1}, ProcNull, AnyTag)
		if err := first(err, expect("status", st, procNullStatus)); err != nil {
			return err
		}
		q, err := Irecv(c, []byte{1}, ProcNull, 3)
		if err != nil || q.Null() {
			return fmt.Errorf("null request: %w", err)
		}
		st, err = q.Wait()
		if err := first(err, expect("status", st, procNullStatus), expect("null", q.Null(), true)); err != nil {
			return err
		}
		m, st, err := Mprobe(c, ProcNull, 0)
		if err := first(err, expect("probed", st, procNullStatus)); err != nil {
			return err
		}
		st, err = Mrecv(m, []byte{1})
		return first(err, expect("received", st, procNullStatus))
	})
}

func TestSelf(t *testing.T) {
	layout{dataLen: 100}.run(t, func(t *testing.T, c *Comm) error {
		for _, n := range []int{0, 10, 1000} {
			q, err := Isend(c, pattern(n, 3), 0, 1)
			if err != nil {
				return err
			}
			buf := make([]byte, n)
			if _, err := Recv(c, buf, AnySource, 1); err != nil {
				return err
			}
			if _, err := q.Wait(); err != nil || !bytes.Equal(buf, pattern(n, 3)) {
				return fmt.Errorf("%d bytes to self: %w", n, err)
			}
		}
		// Buffering is what lets a blocking send to oneself complete.
		if err := Send(c, []byte{7}, 0, 2); err != nil {
			return err
		}
		var b [1]byte
		_, err := Recv(c, b[:], 0, 2)
		return first(err, expect("byte", b[0], byte(7)))
	})
}

func TestSendrecvRing(t *testing.T) {
	layout{procs: 4, dataLen: 1000}.run(t, func(t *testing.T, c *Comm) error {
		n := c.Size()
		right, left := (c.Rank()+1)%n, (c.Rank()+n-1)%n
		out, in := []float64{float64(c.Rank()), 0.5}, make([]float64, 2)
		if _, err := Sendrecv(c, out, right, 1, in, left, 1); err != nil {
			return err
		}
		if err := expect("from the left", in[0], float64(left)); err != nil {
			return err
		}
		big := make([]int64, 1000)
		big[999] = int64(c.Rank())
		if _, err := SendrecvReplace(c, big, right, 1, left, 1); err != nil {
			return err
		}
		return expect("replaced", big[999], int64(left))
	})
}

func TestArguments(t *testing.T) {
	layout{procs: 2, tagUB: 40_000}.run(t, func(t *testing.T, c *Comm) error {
		b := []byte{0}
		for what, err := range map[string]error{
			"rank 2":        Send(c, b, 2, 0),
			"rank -1":       Send(c, b, AnySource, 0),
			"rank -5":       Send(c, b, -5, 0),
			"receive of -9": second(Recv(c, b, -9, 0)),
		} {
			if !errors.Is(err, comm.ErrRank) {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		for what, err := range map[string]error{
			"tag -1":        Send(c, b, 0, -1),
			"AnyTag":        Send(c, b, 0, AnyTag),
			"tag 40001":     Send(c, b, 0, 40_001),
			"receive of -7": second(Recv(c, b, 0, -7)),
		} {
			if !errors.Is(err, ErrTag) {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		if err := Send[byte](nil, b, 0, 0); !errors.Is(err, ErrNotInitialized) {
			return fmt.Errorf("no communicator: %w", err)
		}
		return nil
	})
}

func second[T any](_ T, err error) error { return err }
