package node

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
)

// Programs of jobs that meet. The environment says which service and how often.
func init() {
	programs["accepts"] = accepts
	programs["connects"] = connects
	programs["names"] = askNames
	programs["holds"] = holds
	programs["ports"] = ports
}

const (
	serviceVariable = "MEET_SERVICE"
	timesVariable   = "MEET_TIMES"
	portVariable    = "MEET_PORT"
)

func numberOf(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// opened opens a port at rank 0 and publishes it.
func opened(w *mpi.Comm) (port string) {
	if w.Rank() == 0 {
		var err error
		port, err = mpi.OpenPort(nil)
		check(err)
		check(mpi.PublishName(os.Getenv(serviceVariable), nil, port))
		fmt.Println("published")
	}
	return port
}

// found looks the port up until somebody has published it.
func found(w *mpi.Comm) (port string) {
	for w.Rank() == 0 && port == "" {
		var err error
		if port, err = mpi.LookupName(os.Getenv(serviceVariable), nil); err != nil && mpi.ErrorClass(err) != mpierr.Name {
			check(err)
		}
	}
	return port
}

// accepts lets another job in as often as it is told.
func accepts() {
	w := initialize()
	port := opened(w)
	again(func() (*mpi.Comm, error) { return w.Accept(port, nil, 0) })
	if w.Rank() == 0 {
		check(mpi.UnpublishName(os.Getenv(serviceVariable), nil, port))
		check(mpi.ClosePort(port))
	}
	fmt.Println("done")
	finalize()
}

func connects() {
	w := initialize()
	port := found(w)
	again(func() (*mpi.Comm, error) { return w.Connect(port, nil, 0) })
	fmt.Println("done")
	finalize()
}

// again meets another job, talks to it and leaves it, and reports what has grown
// between a first part of the times and the last.
func again(meet func() (*mpi.Comm, error)) {
	times := numberOf(timesVariable, 1)
	var early [3]int
	for i := range times {
		c, err := meet()
		check(err)
		talkAcross(c)
		check(c.Disconnect())
		if i == times/5 {
			early = held()
		}
	}
	late := held()
	fmt.Println("grown", late[0]-early[0], late[1]-early[1], late[2]-early[2])
}

// held are a proc's descriptors, goroutines, and bytes of living memory in KiB.
func held() [3]int {
	fds, err := os.ReadDir("/proc/self/fd")
	check(err)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return [3]int{len(fds), runtime.NumGoroutine(), int(m.HeapAlloc >> 10)}
}

// talkAcross has each proc of one side talk to each of the other.
func talkAcross(c *mpi.Comm) {
	n, err := c.RemoteSize()
	check(err)
	sends := make([]mpi.Request, n)
	for to := range n {
		sends[to], err = mpi.Isend(c, []int64{int64(1000*c.Rank() + to)}, to, 3)
		check(err)
	}
	for from := range n {
		var x [1]int64
		_, err := mpi.Recv(c, x[:], from, 3)
		check(err)
		if x[0] != int64(1000*from+c.Rank()) {
			check(fmt.Errorf("rank %d of the other side says %d to %d", from, x[0], c.Rank()))
		}
	}
	check(mpi.Waitall(sends, nil))
}

// holds meets the other job and then does what it is told to, or waits for a message
// that does not come.
func holds() {
	w := initialize()
	var c *mpi.Comm
	var err error
	if os.Getenv(portVariable) == "opens" {
		c, err = w.Accept(opened(w), nil, 0)
	} else {
		c, err = w.Connect(found(w), nil, 0)
	}
	check(err)
	talkAcross(c)
	check(mpi.Barrier(w))
	fmt.Println("met")
	check(mpi.Barrier(w))
	switch end := os.Getenv("MEET_END"); end {
	case "abort":
		if w.Rank() == 0 {
			mpi.Abort(7, "enough")
		}
		hang()
	case "exit":
		os.Exit(0)
	case "finalize":
		finalize()
		return
	case "hang":
		hang()
	}
	var x [1]int64
	for range 2 { // and not only once
		_, err = mpi.Recv(c, x[:], 0, 9)
		fmt.Println("class", mpi.ErrorClass(err))
	}
	_, err = w.Connect("impi-port/1+no", nil, 0)
	fmt.Println("class", mpi.ErrorClass(err))
	check(mpi.Barrier(w))
	finalize()
}

// tellClass prints the class of an error, and a part of it that is no secret.
func tellClass(what string, err error) {
	fmt.Println(what, mpi.ErrorClass(err))
	if err != nil && !errors.Is(err, mpierr.ErrCode) {
		fmt.Fprintln(os.Stderr, what, err)
	}
}

// askNames does everything with a name that can be done alone.
func askNames() {
	w := initialize()
	service := os.Getenv(serviceVariable)
	_, err := mpi.LookupName(service, nil)
	tellClass("before", err)
	tellClass("publish", mpi.PublishName(service, nil, "hunter2"))
	tellClass("again", mpi.PublishName(service, nil, "hunter2"))
	port, err := mpi.LookupName(service, nil)
	tellClass("lookup "+port, err)
	tellClass("foreign", mpi.UnpublishName("foreign", nil, ""))
	own := mpi.NewInfo()
	check(own.Set("scope", "job"))
	_, err = mpi.LookupName(service, own)
	tellClass("job", err)
	tellClass("bad", own.Set("timeout", "0.5"))
	fmt.Println("ready")
	if os.Getenv("MEET_END") == "hang" {
		hang()
	}
	tellClass("unpublish", mpi.UnpublishName(service, nil, ""))
	check(mpi.Barrier(w))
	finalize()
}

// ports opens ports and tells how calls of them end that cannot go well.
func ports() {
	initialize()
	self := mpi.Self()
	call := func(what, name string) {
		timeout := mpi.NewInfo()
		check(timeout.Set("timeout", "20"))
		_, err := self.Connect(name, timeout, 0)
		tellClass(what, err)
	}
	good, err := mpi.OpenPort(nil)
	check(err)
	call("malformed", "hunter2")
	call("empty", "")
	damaged := []byte(good)
	for i := range damaged { // the key
		if string(damaged[max(i-4, 0):i]) == "key=" {
			damaged[i] ^= 1
			break
		}
	}
	call("wrong key", string(damaged))
	impatient := mpi.NewInfo()
	check(impatient.Set("timeout", "0.2"))
	_, err = self.Connect(good, impatient, 0) // nobody accepts
	tellClass("unaccepted", err)
	check(mpi.ClosePort(good))
	call("closed", good)
	tellClass("close again", mpi.ClosePort(good))
	_, err = self.Accept(good, nil, 0)
	tellClass("accept closed", err)
	brief := mpi.NewInfo()
	check(brief.Set("lifetime", "0.2"))
	short, err := mpi.OpenPort(brief)
	check(err)
	_, err = self.Accept(short, nil, 0) // until it expires
	tellClass("accept expired", err)
	call("expired", short)
	tellClass("close expired", mpi.ClosePort(short))
	finalize()
}

func init() {
	programs["latecomer"] = latecomer
	programs["many-connects"] = manyConnects
	programs["stuck"] = stuck
}

// latecomer opens a port, and accepts when a line comes on its standard input.
func latecomer() {
	w := initialize()
	info := mpi.NewInfo()
	check(info.Set("backlog", "100"))
	port, err := mpi.OpenPort(info)
	check(err)
	check(mpi.PublishName(os.Getenv(serviceVariable), nil, port))
	fmt.Println("published")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if os.Getenv("MEET_END") == "closes" {
		check(mpi.ClosePort(port))
		finalize()
		return
	}
	for range numberOf(timesVariable, 1) {
		c, err := w.Accept(port, nil, 0)
		check(err)
		talkAcross(c)
		check(c.Disconnect())
	}
	fmt.Println("done")
	finalize()
}

// manyConnects has many connect at once, and tells how many were refused.
func manyConnects() {
	w := initialize()
	port := found(w)
	n := numberOf(timesVariable, 1)
	ends := make(chan error, n)
	for range n {
		self, err := mpi.Self().Dup()
		check(err)
		go func() {
			c, err := self.Connect(port, nil, 0)
			if err == nil {
				talkAcross(c)
				check(c.Disconnect())
			}
			ends <- err
		}()
	}
	for range n {
		if err := <-ends; err != nil {
			tellClass("refused", err)
		} else {
			fmt.Println("met")
		}
	}
	fmt.Println("done")
	finalize()
}

// stuck has rank 0 accept or connect, and the others not take part.
func stuck() {
	w := initialize()
	var err error
	switch {
	case w.Rank() > 0:
		hang()
	case os.Getenv(portVariable) == "opens":
		_, err = w.Accept(opened(w), nil, 0)
	default:
		_, err = w.Connect(found(w), nil, 0)
	}
	tellClass("ended", err)
	hang()
}
