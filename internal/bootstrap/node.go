package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/openimpi/impi/internal/wireup"
)

// Node is the node's side.
type Node struct {
	Order
	Listener net.Listener // of the head, for the nodes of other blocks; nil elsewhere
	Server   net.Listener // of the head, for the job's server; nil elsewhere

	line     *line
	place    NodeAddress
	listener wireup.AttachListener
}

// Proc is a proc that has connected to its node.
type Proc struct {
	Control *wireup.Conn
	PID     int
	AppNum  int
}

// Serve receives the order of the process that has started this one, through the inherited socket.
func Serve(socket io.ReadWriteCloser) (*Node, error) {
	n := &Node{line: newLine(socket)}
	if err := n.line.receive(&n.Order, maxLine); err != nil {
		return nil, fmt.Errorf("cannot read the order of the process that started this node: %w", err)
	}
	if n.Version != version {
		return nil, n.Refuse(fmt.Errorf("the program speaks version %d with its node, which speaks %d: build the program and impi-node from one release", n.Version, version))
	}
	next := 0
	for _, b := range n.Blocks {
		if b.First != next || b.Procs < 1 || b.Procs > 1<<22 {
			return nil, n.Refuse(fmt.Errorf("a block of %d procs begins with rank %d, not %d", b.Procs, b.First, next))
		}
		next += b.Procs
	}
	if n.Self < 0 || n.Self >= len(n.Blocks) {
		return nil, n.Refuse(fmt.Errorf("block %d is none of %d", n.Self, len(n.Blocks)))
	}
	return n, nil
}

// Refuse tells the process that has started this node that it cannot do its work, and returns err.
func (n *Node) Refuse(err error) error {
	_ = n.line.send(NodeAddress{Problem: "impi-node: " + err.Error()}) // it may be gone
	return err
}

// Network is how a node listens for others: at which address, and at a free port of it.
type Network interface {
	Address() (netip.Addr, error)
	Listen(netip.Addr) (net.Listener, error)
}

// Open opens the listeners that other processes connect to, and sends their addresses to the parent
// process. at is used if there are several blocks.
func (n *Node) Open(at Network) (err error) {
	if n.place.Survive, err = survive(os.Getenv(SurviveVariable)); err != nil {
		return n.Refuse(err)
	}
	n.place.Socket = wireup.AttachName()
	if n.listener, err = wireup.ListenAttach(n.place.Socket); err != nil {
		return n.Refuse(err)
	}
	if len(n.Blocks) > 1 {
		if n.place.Address, err = at.Address(); err != nil {
			return n.Refuse(err)
		}
		if n.Self == 0 {
			if n.Listener, err = at.Listen(n.place.Address); err != nil {
				return n.Refuse(fmt.Errorf("the head cannot accept connections of the other nodes: %w", err))
			}
			if n.Server, err = at.Listen(n.place.Address); err != nil {
				return n.Refuse(fmt.Errorf("the job's server cannot accept connections: %w", err))
			}
			n.place.Head, n.place.Server, n.place.Secret = n.Listener.Addr().String(), n.Server.Addr().String(), rand.Text()
		}
	}
	return n.line.send(n.place)
}

// Gather returns the node addresses of all blocks, and the procs of this one in their order, when
// all are there. A rank may come to MPI_Init as late as it likes; once all ranks have, limit is the
// maximum time for their connections. It gives up when ctx ends, or the process that has started
// this one.
func (n *Node) Gather(ctx context.Context, limit time.Duration) ([]NodeAddress, []Proc, error) {
	defer func() { _ = n.listener.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	context.AfterFunc(ctx, func() { _ = n.listener.SetDeadline(time.Unix(1, 0)) })
	told := make(chan answer, 1)
	go n.hearStarter(told, limit, cancel)
	block := n.Blocks[n.Self]
	procs := make([]Proc, block.Procs)
	for missing := block.Procs; missing > 0; {
		c, err := n.listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			closeAll(procs)
			return nil, nil, fmt.Errorf("%d of %d procs are missing: %w", missing, block.Procs, err)
		}
		if err = n.admit(c, procs, block); err != nil {
			fmt.Fprintln(os.Stderr, "impi-node: refused a proc:", err)
			continue
		}
		missing--
	}
	a := <-told
	return a.places, procs, a.err
}

type answer struct {
	places []NodeAddress
	err    error
}

// hearStarter receives the node addresses of the blocks, after which procs have limit to connect,
// and notices the end of the process that has started this node.
func (n *Node) hearStarter(told chan<- answer, limit time.Duration, cancel context.CancelCauseFunc) {
	var a answer
	a.err = n.line.receive(&a.places, maxLine)
	if a.err == nil && len(a.places) != len(n.Blocks) {
		a.err = fmt.Errorf("it has named %d blocks, not %d", len(a.places), len(n.Blocks))
	}
	ended := func(err error) error {
		return fmt.Errorf("rank %d, which has started this node, has ended: %w", n.Blocks[n.Self].First, err)
	}
	if a.err != nil {
		a.err = ended(a.err)
		cancel(a.err)
		told <- a
		return
	}
	late := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%v have passed since all were in MPI_Init", limit)) })
	defer late.Stop()
	told <- a
	err := n.line.receive(new(NodeAddress), maxAddress) // no message follows, but its end is seen
	cancel(ended(err))
}

func closeAll(procs []Proc) {
	for _, p := range procs {
		if p.Control != nil {
			_ = p.Control.Close()
		}
	}
}

func (n *Node) admit(c *net.UnixConn, procs []Proc, block Block) error {
	a, err := wireup.ReceiveAttach(c)
	if err != nil {
		return err
	}
	switch i := int(a.Peer) - block.First; {
	case i < 0 || i >= len(procs):
		err = fmt.Errorf("rank %d is none of %d to %d, which are here", a.Peer, block.First, block.First+block.Procs-1)
	case procs[i].Control != nil:
		err = fmt.Errorf("rank %d is there already", a.Peer)
	default:
		procs[i] = Proc{a.Conn, a.PID, a.Code}
		return nil
	}
	return errors.Join(err, a.Conn.Close())
}

// Close reports to the process that has started this one that nothing of the job is left, and the
// job's status.
func (n *Node) Close(status int) {
	_ = n.line.send(outcome{status}) // it may be gone
	_ = n.line.Close()
}
