// Command joinpair is two jobs of one rank each that have nothing in common but a TCP
// connection: one listens, the other dials, and both call CommJoin with it. Then
// they exchange messages by MPI, and after that by the connection, which is as it was.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

const (
	count = 1000
	tag   = 1
)

var errAnswer = errors.New("wrong answer")

func main() {
	listen := flag.String("listen", "", "host:port where to wait for the other job")
	dial := flag.String("dial", "", "host:port where the other job waits")
	patience := flag.Duration("patience", time.Minute, "how long to wait for the other job")
	flag.Parse()
	if err := run(*listen, *dial, *patience); err != nil {
		mpi.Abort(1, "joinpair: "+err.Error())
	}
}

func run(listen, dial string, patience time.Duration) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	conn, err := meet(listen, dial, time.Now().Add(patience))
	if err != nil {
		return err
	}
	defer conn.Close()
	inter, err := join(conn)
	if err != nil {
		return err
	}
	if listen != "" {
		err = square(inter)
	} else {
		err = ask(inter)
	}
	if err = errors.Join(err, inter.Disconnect()); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(conn, "done"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if line != "done\n" {
		return fmt.Errorf("%w: the other job says %q by the connection", errAnswer, line)
	}
	fmt.Println("joinpair: joined, disconnected, and the connection is as it was")
	return mpi.Finalize()
}

// meet makes a connection, in whatever way the two jobs have for that: MPI has no part in
// it.
func meet(listen, dial string, until time.Time) (net.Conn, error) {
	if listen != "" {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		if err := l.(*net.TCPListener).SetDeadline(until); err != nil {
			return nil, err
		}
		return l.Accept()
	}
	for {
		conn, err := net.Dial("tcp", dial)
		if err == nil || time.Now().After(until) {
			return conn, err
		}
		time.Sleep(20 * time.Millisecond) // the other job may start later
	}
}

// join passes the connection's descriptor, of which File makes a duplicate, to MPI.
func join(conn net.Conn) (*mpi.Comm, error) {
	f, err := conn.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mpi.CommJoin(int(f.Fd()))
}

func square(inter *mpi.Comm) error {
	n := []int64{0}
	for range count {
		if _, err := mpi.Recv(inter, n, 0, tag); err != nil {
			return err
		}
		n[0] *= n[0]
		if err := mpi.Send(inter, n, 0, tag); err != nil {
			return err
		}
	}
	return nil
}

func ask(inter *mpi.Comm) error {
	sum, n, squared := int64(0), []int64{0}, []int64{0}
	for n[0] < count {
		n[0]++
		if _, err := mpi.Sendrecv(inter, n, 0, tag, squared, 0, tag); err != nil {
			return err
		}
		sum += squared[0]
	}
	if sum != count*(count+1)*(2*count+1)/6 {
		return fmt.Errorf("%w: the squares add up to %d", errAnswer, sum)
	}
	fmt.Printf("joinpair: the squares of 1 to %d add up to %d\n", count, sum)
	return nil
}
