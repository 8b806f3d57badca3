package mpi

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

// mode is a mode of sending in its three forms.
type mode struct {
	send  func(c *Comm, buf []byte, dst, tag int) error
	begin func(c *Comm, buf []byte, dst, tag int) (Request, error)
	plan  func(c *Comm, buf []byte, dst, tag int) (Request, error)
}

var allModes = map[string]mode{
	"standard":    {Send[byte], Isend[byte], SendInit[byte]},
	"synchronous": {Ssend[byte], Issend[byte], SsendInit[byte]},
	"buffered":    {Bsend[byte], Ibsend[byte], BsendInit[byte]},
	"ready":       {Rsend[byte], Irsend[byte], RsendInit[byte]},
}

// forms send one message, each in its way.
var forms = map[string]func(m mode, c *Comm, buf []byte, dst, tag int) error{
	"blocking": func(m mode, c *Comm, buf []byte, dst, tag int) error { return m.send(c, buf, dst, tag) },
	"non-blocking": func(m mode, c *Comm, buf []byte, dst, tag int) error {
		q, err := m.begin(c, buf, dst, tag)
		if err != nil {
			return err
		}
		return complete(&q)
	},
	"persistent": func(m mode, c *Comm, buf []byte, dst, tag int) error {
		q, err := m.plan(c, buf, dst, tag)
		if err == nil {
			err = q.Start()
		}
		if err != nil {
			return err
		}
		if err := complete(&q); err != nil {
			return err
		}
		if q.Null() {
			return fmt.Errorf("the plan is gone")
		}
		return q.Free()
	},
}

// complete waits by testing.
func complete(q *Request) error {
	for {
		if done, _, err := q.Test(); done || err != nil {
			return err
		}
		runtime.Gosched() // the other rank may live on the same core
	}
}

// arrivals are ways of receiving one message.
var arrivals = map[string]func(c *Comm, buf []byte, src, tag int) (Status, error){
	"blocking": Recv[byte],
	"non-blocking": func(c *Comm, buf []byte, src, tag int) (Status, error) {
		q, err := Irecv(c, buf, src, tag)
		if err != nil {
			return Status{}, err
		}
		return q.Wait()
	},
	"persistent": func(c *Comm, buf []byte, src, tag int) (Status, error) {
		q, err := RecvInit(c, buf, src, tag)
		if err == nil {
			err = q.Start()
		}
		if err != nil {
			return Status{}, err
		}
		return q.Wait()
	},
}

func TestEveryModeInEveryForm(t *testing.T) {
	sizes := []int{0, 1, 99, 100, 101, 3000, 20_000}
	for _, dataLen := range []uint32{1, 100, 10_000} {
		for name, m := range allModes {
			for form, send := range forms {
				t.Run(fmt.Sprintf("%s/%s/datalen=%d", name, form, dataLen), func(t *testing.T) {
					layout{procs: 2, dataLen: dataLen}.run(t, func(t *testing.T, c *Comm) error {
						if c.Rank() == 1 {
							return takeAll(c, sizes, dataLen)
						}
						if err := attach(c, 20_000+BsendOverhead); err != nil {
							return err
						}
						for i, n := range sized(sizes, dataLen) {
							for range arrivals {
								if err := send(m, c, pattern(n, i), 1, i); err != nil {
									return err
								}
								if _, err := Recv(c, []byte{0}, 1, 50); err != nil { // room for the next Bsend
									return err
								}
							}
						}
						_, err := detach(c)
						return err
					})
				})
			}
		}
	}
}

// sized leaves out what takes too many packets.
func sized(sizes []int, dataLen uint32) []int {
	if dataLen == 1 {
		return sizes[:5]
	}
	return sizes
}

func takeAll(c *Comm, sizes []int, dataLen uint32) error {
	for i, n := range sized(sizes, dataLen) {
		for how, arrive := range arrivals {
			buf := make([]byte, n+3)
			st, err := arrive(c, buf, 0, i)
			if err != nil {
				return fmt.Errorf("%s: %w", how, err)
			}
			if !bytes.Equal(buf[:n], pattern(n, i)) || !bytes.Equal(buf[n:], []byte{0, 0, 0}) {
				return fmt.Errorf("%s: %d bytes arrived damaged", how, n)
			}
			if err := first(expect("bytes", st.Bytes(), int64(n)), expect("source", st.Source, 0), expect("tag", st.Tag, i)); err != nil {
				return fmt.Errorf("%s: %w", how, err)
			}
			if err := Send(c, []byte{0}, 0, 50); err != nil {
				return err
			}
		}
	}
	return nil
}

// Whatever is done with MPI_PROC_NULL is done at once, and is nothing.
func TestProcNullInEveryForm(t *testing.T) {
	layout{}.run(t, func(t *testing.T, c *Comm) error {
		buf := []byte{42}
		for name, m := range allModes {
			for form, send := range forms {
				if err := send(m, c, buf, ProcNull, 3); err != nil {
					return fmt.Errorf("%s %s: %w", form, name, err)
				}
			}
		}
		for how, arrive := range arrivals {
			st, err := arrive(c, buf, ProcNull, 3)
			if err := first(err, expect(how, st, procNullStatus)); err != nil {
				return err
			}
		}
		st, err := Sendrecv(c, buf, ProcNull, 1, buf, ProcNull, 2)
		if err := first(err, expect("sendrecv", st, procNullStatus)); err != nil {
			return err
		}
		st, err = SendrecvReplace(c, buf, ProcNull, 1, ProcNull, 2)
		if err := first(err, expect("sendrecv_replace", st, procNullStatus)); err != nil {
			return err
		}
		st, err = Probe(c, ProcNull, 1)
		if err := first(err, expect("probe", st, procNullStatus)); err != nil {
			return err
		}
		found, st, err := Iprobe(c, ProcNull, AnyTag)
		if err := first(err, expect("iprobe", st, procNullStatus), expect("found", found, true)); err != nil {
			return err
		}
		return expect("buffer", buf[0], 42)
	})
}

// One half of an exchange may be missing.
func TestSendrecvAtTheEdge(t *testing.T) {
	layout{procs: 3}.run(t, func(t *testing.T, c *Comm) error {
		left, right := c.Rank()-1, c.Rank()+1
		if left < 0 {
			left = ProcNull
		}
		if right == c.Size() {
			right = ProcNull
		}
		out, in := []int32{int32(c.Rank())}, []int32{-1}
		st, err := Sendrecv(c, out, right, 1, in, left, 1)
		if err != nil {
			return err
		}
		if left == ProcNull {
			return first(expect("status", st, procNullStatus), expect("untouched", in[0], -1))
		}
		return first(expect("source", st.Source, left), expect("from the left", in[0], int32(left)))
	})
}
