// Package tun joins network namespaces by lines of a wide area: a network reads the IP packets of
// TUN devices, gives them to the lines, and writes what arrives.
package tun

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/wan"
	"golang.org/x/sys/unix"
)

// MTU is the default of Options.MTU in bytes, that of Ethernet.
const MTU = 1500

// Network is a set of lines between ports, one for each pair and direction.
type Network struct {
	mtu       int
	ports     []int          // descriptors
	byAddress map[uint32]int // ports by their addresses
	wake      int            // an eventfd that tells Run to end
	begun     time.Time

	mu    sync.Mutex
	lines [][]*wan.Line[packet] // by source and destination port
	free  [len(classes)]*datagram
	in    [headSize + maxPacket]byte
	out   [headSize + maxPacket]byte
}

type packet struct {
	of    *datagram
	index int
}

// Options describe what joins the ports of a network.
type Options struct {
	// Shape returns the shape of the line from one port to another one.
	Shape func(from, to int) wan.Shape
	Seed  uint64
	MTU   int // 0: that of Ethernet
}

// New makes the ports and lines between them. Run forwards packets, Close removes the devices.
func New(ports []Port, o Options) (n *Network, err error) {
	n = &Network{mtu: o.MTU, byAddress: make(map[uint32]int), begun: time.Now(), wake: -1}
	n.mtu = cmp.Or(n.mtu, MTU)
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("an event: %w", err)
	}
	n.lines = make([][]*wan.Line[packet], len(ports))
	for from, p := range ports {
		fd, err := p.open(n.mtu)
		if err != nil {
			return nil, err
		}
		n.ports = append(n.ports, fd)
		address := p.Address.Addr().As4()
		n.byAddress[binary.BigEndian.Uint32(address[:])] = from
		n.lines[from] = make([]*wan.Line[packet], len(ports))
		for to := range ports {
			if from == to {
				continue
			}
			shape := o.Shape(from, to)
			if err := shape.Check(); err != nil {
				return nil, fmt.Errorf("the line from %s to %s: %w", p.Namespace, ports[to].Namespace, err)
			}
			n.lines[from][to] = wan.NewLine[packet](shape, o.Seed+uint64(from*len(ports)+to)*0x9e3779b97f4a7c15)
		}
	}
	return n, nil
}

// Close removes the devices. Run must have returned.
func (n *Network) Close() {
	for _, fd := range n.ports {
		_ = unix.Close(fd)
	}
	if n.wake >= 0 {
		_ = unix.Close(n.wake)
	}
	n.ports, n.wake = nil, -1
}

// Counts returns the counts of the packets from one port to another one.
func (n *Network) Counts(from, to int) wan.Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lines[from][to].Counts()
}

// Reshape changes the shape of a line; packets under way arrive as they would have.
func (n *Network) Reshape(from, to int, shape wan.Shape) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lines[from][to].Reshape(time.Since(n.begun), shape)
}

const (
	// batch is how many packets are read from a port before others get their turn.
	batch = 64
	// grain is the least time that Run sleeps for: packets that arrive within it leave together.
	// Without it each packet of a busy line would cost a sleep of its own.
	grain = 100 * time.Microsecond
)

// Run forwards packets until the context ends, which is no error. It needs a thread of its own.
func (n *Network) Run(ctx context.Context) error {
	runtime.LockOSThread() // for the timer; not unlocked: the thread ends with the goroutine's
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0); err != nil {
		return fmt.Errorf("precise timers: %w", err)
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_, _ = unix.Write(n.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken // Close may follow
		}
	}()
	poll := []unix.PollFd{{Fd: int32(n.wake), Events: unix.POLLIN}}
	for _, fd := range n.ports {
		poll = append(poll, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	ready := make([]bool, len(n.ports))
	for ctx.Err() == nil {
		moved, next, err := n.step(ready)
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		var until *unix.Timespec
		if next >= 0 {
			ts := unix.NsecToTimespec(int64(max(next-time.Since(n.begun), grain)))
			until = &ts
		}
		if _, err := unix.Ppoll(poll, until, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for packets: %w", err)
		}
		for i := range ready {
			ready[i] = poll[1+i].Revents != 0
		}
	}
	return nil
}

// step writes what has arrived and reads what there is at the ports that are ready, until they are
// not. It returns whether there was anything to read, and when the next packet arrives, or -1.
func (n *Network) step(ready []bool) (moved bool, next time.Duration, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Since(n.begun)
	next = -1
	for _, lines := range n.lines {
		for to, line := range lines {
			if line == nil {
				continue
			}
			if err := n.deliver(to, line, now); err != nil {
				return false, 0, err
			}
			if at, ok := line.Next(); ok && (next < 0 || at < next) {
				next = at
			}
		}
	}
	for from, fd := range n.ports {
		for range batch {
			if !ready[from] {
				break
			}
			size, err := unix.Read(fd, n.in[:])
			if errors.Is(err, unix.EAGAIN) {
				ready[from] = false
				break
			}
			if err != nil {
				return false, 0, fmt.Errorf("read from the device of port %d: %w", from, err)
			}
			n.offer(from, n.in[:size], now)
			moved = true
		}
	}
	return moved, next, nil
}

// deliver writes what has arrived from a line, packets in a row of a datagram at once.
func (n *Network) deliver(to int, line *wan.Line[packet], now time.Duration) error {
	p, ok := line.Take(now)
	for ok {
		end := p.index + 1
		q, more := line.Take(now)
		for more && q.of == p.of && q.index == end {
			end++
			q, more = line.Take(now)
		}
		if err := n.write(to, p.of, p.index, end); err != nil {
			return err
		}
		p, ok = q, more
	}
	return nil
}

func (n *Network) offer(from int, data []byte, now time.Duration) {
	d := n.take(data)
	to, known := n.destination(data)
	if known && to != from && d.parse() {
		line := n.lines[from][to]
		d.left = 1 // until all are offered
		for i := range d.packets() {
			d.left += line.Offer(now, packet{d, i}, d.size(i))
		}
		d.left--
	}
	if d.left == 0 {
		n.release(d)
	}
}

// destination returns the port that an IP packet is for; those of IPv6, which devices send by
// themselves, have none.
func (n *Network) destination(data []byte) (to int, ok bool) {
	if len(data) < headSize+20 || data[headSize]>>4 != 4 {
		return 0, false
	}
	to, ok = n.byAddress[binary.BigEndian.Uint32(data[headSize+16:])]
	return to, ok
}

// classes are the sizes of memory of datagrams.
var classes = [...]int{256, 2048, 16 << 10, headSize + maxPacket}

// take returns a datagram with a copy of data, for release to take back.
func (n *Network) take(data []byte) *datagram {
	class := 0
	for classes[class] < len(data) {
		class++
	}
	d := n.free[class]
	if d == nil {
		d = &datagram{class: class, data: make([]byte, classes[class])}
	} else {
		n.free[class] = d.next
	}
	d.left = 0
	d.data = d.data[:copy(d.data[:cap(d.data)], data)]
	return d
}

func (n *Network) release(d *datagram) { d.next, n.free[d.class] = n.free[d.class], d }

// write hands packets to the kernel of a port. What it does not want is lost, as on any network.
func (n *Network) write(to int, d *datagram, from, end int) error {
	_, err := unix.Write(n.ports[to], d.span(n.out[:], from, end))
	if d.left -= end - from; d.left == 0 {
		n.release(d)
	}
	switch {
	case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EIO):
		return nil
	}
	return fmt.Errorf("write to the device of port %d: %w", to, err)
}
