package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// The floor is the cost of the medium itself: two processes that poll the two ends of one connected
// socket pair, with no header, no matching, no protocol.

func (o *options) runFloor(ctx context.Context, bench string, sizes []int) ([]figure, error) {
	ends, address, err := o.floorMedium()
	if err != nil {
		return nil, err
	}
	var args [2][]string
	for i := range args {
		args[i] = loopsOf(bench, o.seconds, sizes, floorWord, strconv.Itoa(i))
	}
	return runPair(ctx, args, ends, floorAddress+"="+address)
}

// floorMedium makes the medium between the two processes: a socket for each or, for QUIC, a
// socket for the second process and its address for the first.
func (o *options) floorMedium() (ends [2]*os.File, address string, err error) {
	if o.transport == "quic" {
		ends[1], address, err = quicPort()
		return ends, address, err
	}
	ends, err = socketPair(strings.TrimSuffix(o.transport, "+tls"))
	return ends, "", err
}

func floorLink(first bool) (end io.ReadWriteCloser, l link.Link, err error) {
	if address := os.Getenv(floorAddress); address != "" {
		end, err = quicEnd(first, address)
		return end, nil, err
	}
	l, err = socket.New(3, nil)
	return nil, l, err
}

func socketPair(transport string) (ends [2]*os.File, err error) {
	if transport == "tcp" {
		return tcpPair()
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ends, fmt.Errorf("floor: %w", err)
	}
	for i, fd := range fds {
		ends[i] = os.NewFile(uintptr(fd), "floor")
	}
	return ends, nil
}

func tcpPair() (ends [2]*os.File, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ends, err
	}
	defer l.Close()
	conns := [2]net.Conn{}
	if conns[0], err = net.Dial("tcp", l.Addr().String()); err != nil {
		return ends, err
	}
	defer conns[0].Close()
	if conns[1], err = l.Accept(); err != nil {
		return ends, err
	}
	defer conns[1].Close()
	for i, c := range conns {
		if ends[i], err = c.(*net.TCPConn).File(); err != nil { // Go sets TCP_NODELAY
			return ends, err
		}
	}
	return ends, nil
}

type floorEnd struct {
	link    link.Link          // polled
	conn    io.ReadWriteCloser // or blocking
	first   bool
	buf     []byte
	batch   [1][]byte
	control [8]byte
}

// runFloorChild: 0|1 BENCHMARK SECONDS SIZE...
func runFloorChild(args []string) error {
	e := &floorEnd{first: args[0] == "0"}
	var err error
	if e.conn, e.link, err = floorLink(e.first); err != nil {
		return err
	}
	bench, target, sizes, err := parseLoops(args[1:])
	if err != nil {
		return err
	}
	for _, size := range sizes {
		e.buf = make([]byte, size)
		if err := e.measure(bench, target); err != nil {
			return err
		}
	}
	if e.conn != nil {
		return e.conn.Close()
	}
	return e.link.Close()
}

func (e *floorEnd) measure(bench string, target float64) (err error) {
	if e.first {
		return report(e, bench, len(e.buf), target)
	}
	return follow(e, bench)
}

func (e *floorEnd) agree(n int64) (int64, error) {
	if e.first {
		binary.LittleEndian.PutUint64(e.control[:], uint64(n))
		return n, e.send(e.control[:])
	}
	err := e.recv(e.control[:])
	return int64(binary.LittleEndian.Uint64(e.control[:])), err
}

func (e *floorEnd) iterate(bench string, n int64) (err error) {
	times, answer := 1, e.buf
	if bench == "stream" {
		times, answer = depth, e.control[:1]
	}
	for i := int64(0); i < n && err == nil; i++ {
		if e.first {
			for k := 0; k < times && err == nil; k++ {
				err = e.send(e.buf)
			}
			if err == nil {
				err = e.recv(answer)
			}
			continue
		}
		for k := 0; k < times && err == nil; k++ {
			err = e.recv(e.buf)
		}
		if err == nil {
			err = e.send(answer)
		}
	}
	return err
}

func (e *floorEnd) send(b []byte) error {
	if e.conn != nil {
		_, err := e.conn.Write(b)
		return err
	}
	for len(b) > 0 {
		e.batch[0] = b
		n, err := e.link.Send(e.batch[:])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (e *floorEnd) recv(b []byte) error {
	if e.conn != nil {
		_, err := io.ReadFull(e.conn, b)
		return err
	}
	for len(b) > 0 {
		e.batch[0] = b
		n, err := e.link.Recv(e.batch[:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("floor: the other process ended: %w", io.ErrUnexpectedEOF)
			}
			return err
		}
		b = b[n:]
	}
	return nil
}
