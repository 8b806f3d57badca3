package mpi

import (
	"errors"
	"fmt"
	"testing"
)

func TestNullRequests(t *testing.T) {
	var q Request
	st, err := q.Wait()
	if err := first(err, expect("status", st, emptyStatus)); err != nil {
		t.Error(err)
	}
	if done, st, err := q.Test(); !done || err != nil || st != emptyStatus {
		t.Error(done, st, err)
	}
	if err := Waitall(make([]Request, 3), nil); err != nil {
		t.Error(err)
	}
	if i, st, err := Waitany(make([]Request, 3)); i != Undefined || st != emptyStatus || err != nil {
		t.Error(i, st, err)
	}
	if i, done, _, err := Testany(nil); i != Undefined || !done || err != nil {
		t.Error(i, done, err)
	}
	if is, err := Waitsome(make([]Request, 3), nil); is != nil || err != nil {
		t.Error(is, err)
	}
	if is, done, err := Testsome(nil, nil); is != nil || !done || err != nil {
		t.Error(is, done, err)
	}
	if err := Waitall(make([]Request, 2), make([]Status, 1)); !errors.Is(err, ErrArg) {
		t.Error(err)
	}
}

func TestWaitallAndStatuses(t *testing.T) {
	layout{procs: 3}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() > 0 {
			return first(Send(c, []int32{1, 2, 3}, 0, c.Rank()), Send(c, []int32{9}, 0, 7))
		}
		bufs := make([][4]int32, 4)
		reqs := make([]Request, 4)
		for i, from := range []int{1, 2, 1, 2} {
			tag := from
			if i >= 2 {
				tag = 7
			}
			var err error
			if reqs[i], err = Irecv(c, bufs[i][:], from, tag); err != nil {
				return err
			}
		}
		statuses := make([]Status, 4)
		if err := Waitall(reqs, statuses); err != nil {
			return err
		}
		for i, want := range []int{3, 3, 1, 1} {
			n, whole := Count[int32](statuses[i])
			if err := first(expect("count", n, want), expect("whole", whole, true), expect("null", reqs[i].Null(), true)); err != nil {
				return err
			}
		}
		if n, whole := Count[int64](statuses[0]); n != 1 || whole {
			return fmt.Errorf("12 bytes are %d int64, whole %v", n, whole)
		}
		return nil
	})
}

func TestWaitallReportsEachFailure(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 1 {
			return first(Send(c, []byte{1, 2}, 0, 1), Send(c, []byte{1}, 0, 2))
		}
		reqs := make([]Request, 2)
		reqs[0], _ = Irecv(c, make([]byte, 1), 1, 1)
		reqs[1], _ = Irecv(c, make([]byte, 1), 1, 2)
		statuses := make([]Status, 2)
		err := Waitall(reqs, statuses)
		if !errors.Is(err, ErrInStatus) || statuses[0].Err == nil || statuses[1].Err != nil {
			return fmt.Errorf("%w; %v; %v", err, statuses[0].Err, statuses[1].Err)
		}
		return nil
	})
}

func TestWaitanyWaitsomeTestall(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		const n = 20
		if c.Rank() == 1 {
			for i := range n {
				if err := Send(c, []int32{int32(i)}, 0, n-1-i); err != nil {
					return err
				}
			}
			_, err := Recv(c, []byte{0}, 0, 99)
			return err
		}
		bufs := make([]int32, n)
		reqs := make([]Request, n)
		for i := range reqs {
			reqs[i], _ = Irecv(c, bufs[i:i+1], 1, i)
		}
		if done, err := Testall(append(reqs[:n:n], Request{}), nil); err != nil {
			return fmt.Errorf("testall %v: %w", done, err)
		}
		seen := 0
		for range 5 {
			i, st, err := Waitany(reqs)
			if err != nil || st.Tag != i || bufs[i] != int32(n-1-i) {
				return fmt.Errorf("waitany: %d %+v %d: %w", i, st, bufs[i], err)
			}
			seen++
		}
		for seen < n {
			statuses := make([]Status, n)
			is, err := Waitsome(reqs, statuses)
			if err != nil || len(is) == 0 {
				return fmt.Errorf("waitsome: %v: %w", is, err)
			}
			for k, i := range is {
				if err := expect("tag", statuses[k].Tag, i); err != nil {
					return err
				}
			}
			seen += len(is)
		}
		if i, _, err := Waitany(reqs); i != Undefined || err != nil {
			return fmt.Errorf("after all: %d, %w", i, err)
		}
		return Send(c, []byte{0}, 1, 99)
	})
}

func TestTestallTakesAllOrNone(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 1 {
			if err := Send(c, []byte{1}, 0, 1); err != nil {
				return err
			}
			if _, err := Recv(c, []byte{0}, 0, 3); err != nil {
				return err
			}
			return Send(c, []byte{2}, 0, 2)
		}
		reqs := make([]Request, 2)
		reqs[0], _ = Irecv(c, []byte{0}, 1, 1)
		reqs[1], _ = Irecv(c, []byte{0}, 1, 2)
		for {
			done, _, err := reqs[0].Status()
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
		if done, err := Testall(reqs, nil); done || err != nil || reqs[0].Null() {
			return fmt.Errorf("one of two was taken: %v, %w", done, err)
		}
		if err := Send(c, []byte{0}, 1, 3); err != nil {
			return err
		}
		for {
			done, err := Testall(reqs, nil)
			if err != nil || done {
				return err
			}
		}
	})
}

func TestCopyOfCompletedRequest(t *testing.T) {
	layout{procs: 1}.run(t, func(t *testing.T, c *Comm) error {
		q, err := Isend(c, []byte{1}, 0, 1)
		if err != nil {
			return err
		}
		twin := q
		if _, err := Recv(c, []byte{0}, 0, 1); err != nil {
			return err
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
		if _, err := twin.Wait(); !errors.Is(err, ErrRequest) {
			return fmt.Errorf("the copy was completed again: %w", err)
		}
		return nil
	})
}

func TestPersistent(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		buf := make([]int64, 1)
		var q Request
		var err error
		if c.Rank() == 0 {
			q, err = SendInit(c, buf, 1, 4)
		} else {
			q, err = RecvInit(c, buf, 0, 4)
		}
		if err != nil {
			return err
		}
		if st, err := q.Wait(); err != nil || st != emptyStatus || q.Null() {
			return fmt.Errorf("inactive: %+v, %w", st, err)
		}
		for i := range 10 {
			if c.Rank() == 0 {
				buf[0] = int64(i)
			}
			if err := Startall([]Request{}); err != nil {
				return err
			}
			if err := q.Start(); err != nil {
				return err
			}
			if err := q.Start(); !errors.Is(err, ErrRequest) {
				return fmt.Errorf("started twice: %w", err)
			}
			if _, err := q.Wait(); err != nil {
				return err
			}
			if err := expect("round", buf[0], int64(i)); err != nil {
				return err
			}
		}
		return q.Free()
	})
}

func TestCancelReceive(t *testing.T) {
	layout{procs: 1}.run(t, func(t *testing.T, c *Comm) error {
		q, err := Irecv(c, []byte{0}, 0, 1)
		if err != nil {
			return err
		}
		if err := q.Cancel(); err != nil {
			return err
		}
		st, err := q.Wait()
		if err := first(err, expect("cancelled", st.Cancelled(), true)); err != nil {
			return err
		}
		// The message that it would have taken is there for the next receive.
		if err := Send(c, []byte{5}, 0, 1); err != nil {
			return err
		}
		var b [1]byte
		_, err = Recv(c, b[:], 0, 1)
		return first(err, expect("byte", b[0], byte(5)))
	})
}

func TestCancelSend(t *testing.T) {
	for name, n := range map[string]int{"short synchronous": 4, "long": 500} {
		t.Run(name, func(t *testing.T) {
			layout{procs: 2, dataLen: 100}.run(t, func(t *testing.T, c *Comm) error {
				if c.Rank() == 0 {
					q, err := Issend(c, pattern(n, 0), 1, 1)
					if err != nil {
						return err
					}
					if err := q.Cancel(); err != nil {
						return err
					}
					for done := false; !done && err == nil; {
						var st Status
						if done, st, err = q.Status(); done && !st.Cancelled() {
							return errors.New("not cancelled, says the status of the request")
						}
					}
					st, err := q.Wait()
					if err := first(err, expect("cancelled", st.Cancelled(), true)); err != nil {
						return err
					}
					return Send(c, []byte{1}, 1, 2)
				}
				if _, err := Recv(c, []byte{0}, 0, 2); err != nil {
					return err
				}
				found, _, err := Iprobe(c, 0, 1)
				return first(err, expect("message", found, false))
			})
		})
	}
}

func TestCancelTooLate(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 1 {
			q, err := Irecv(c, make([]byte, 4), 0, 1)
			if err != nil {
				return err
			}
			if err := Send(c, []byte{1}, 0, 2); err != nil {
				return err
			}
			_, err = q.Wait()
			return err
		}
		if _, err := Recv(c, []byte{0}, 1, 2); err != nil { // the receive is posted
			return err
		}
		q, err := Issend(c, pattern(4, 0), 1, 1)
		if err != nil {
			return err
		}
		if err := q.Cancel(); err != nil {
			return err
		}
		st, err := q.Wait()
		return first(err, expect("cancelled", st.Cancelled(), false))
	})
}

func TestFreeLetsTheSendHappen(t *testing.T) {
	layout{procs: 2, dataLen: 100}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 0 {
			q, err := Isend(c, pattern(1000, 1), 1, 1)
			if err != nil {
				return err
			}
			if err := q.Free(); err != nil || !q.Null() {
				return fmt.Errorf("free: %w", err)
			}
			_, err = Recv(c, []byte{0}, 1, 2)
			return err
		}
		buf := make([]byte, 1000)
		if _, err := Recv(c, buf, 0, 1); err != nil {
			return err
		}
		return first(expect("last byte", buf[999], pattern(1000, 1)[999]), Send(c, []byte{0}, 0, 2))
	})
}
