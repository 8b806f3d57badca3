package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/transports/quic"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/tcp"
	sockets "github.com/openimpi/impi/transports/unix"
)

// The cost of a plugin is measured by comparison: two processes run the same loops with the same
// library and the same transport, but call the transport themselves. There is no node, no plugin,
// and no descriptor is passed on.

type insideTransport struct {
	name string
	make func() transports.Transport
}

// insideTransports is the list of transports that this program knows, those that a node tries first
// in front: what the other files have follows from it.
var insideTransports = []insideTransport{
	{"shm", func() transports.Transport { return shm.New() }},
	{"unix", func() transports.Transport { return sockets.New() }},
	{"tcp", func() transports.Transport { return tcp.New() }},
	{secureTCP, func() transports.Transport { return tcp.New() }},
	{"quic", func() transports.Transport { return quic.New() }},
}

func insideNames() (names []string) {
	for _, t := range insideTransports {
		names = append(names, t.name)
	}
	return names
}

const insidePatience = 10 * time.Second

// runInside starts both processes. The second tells the first by a pipe where it
// listens.
func (w *own) runInside(ctx context.Context, bench string, sizes []int) ([]figure, error) {
	w.secure(w.o.transport)
	if err := os.MkdirAll(filepath.Join(w.dir, socketsName), 0o700); err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	var args [2][]string
	for i := range args {
		args[i] = loopsOf(bench, w.o.seconds, sizes, insideWord, strconv.Itoa(i), w.o.transport, w.dir)
	}
	return runPair(ctx, args, [2]*os.File{in, out})
}

const socketsName = "sockets"

type inside struct {
	rank      int
	transport string // name as in -transport
	dir       string
	made      transports.Transport
	link      link.Link
	agent     [2]int // a pair; nothing reads the second
}

// runInsideChild: 0|1 TRANSPORT DIRECTORY BENCHMARK SECONDS SIZE...
func runInsideChild(args []string) error {
	if len(args) < 6 {
		return fmt.Errorf("%s is started by impi-bench itself", insideWord)
	}
	e := &inside{transport: args[1], dir: args[2]}
	if args[0] == "1" {
		e.rank = 1
	}
	if err := e.connect(); err != nil {
		return err
	}
	proc, err := e.join()
	if err != nil {
		return err
	}
	if err := runLoops(proc.World(), args[3:]); err != nil {
		return err
	}
	if err := proc.Finalize(); err != nil {
		return err
	}
	return e.part()
}

func (e *inside) connect() error {
	e.made = insideTransports[slices.Index(insideNames(), e.transport)].make()
	if err := e.made.Configure(e.settings()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), insidePatience)
	defer cancel()
	meeting := os.NewFile(3, "meeting")
	defer meeting.Close()
	var err error
	if e.rank == 1 {
		e.link, err = e.accept(ctx, meeting)
	} else {
		e.link, err = e.dial(ctx, meeting)
	}
	if err != nil {
		return err
	}
	// As a proc does with memory that a plugin has made.
	if l, ok := e.link.(interface{ AllowLending() error }); ok {
		return l.AllowLending()
	}
	return nil
}

func (e *inside) settings() map[string]any {
	s := transports.Defaults(e.made.Schema())
	if needsTwoSites(e.transport) {
		for name, file := range credentials {
			s[name] = filepath.Join(e.dir, file)
		}
	}
	if e.transport == secureTCP {
		s["tls"] = true
	}
	return s
}

func (e *inside) accept(ctx context.Context, meeting *os.File) (link.Link, error) {
	at, err := e.made.Listen(ctx, transports.ListenSpec{Host: e.host(1), Dir: filepath.Join(e.dir, socketsName), Name: "bench"})
	if err != nil {
		return nil, err
	}
	defer at.Close()
	if _, err := fmt.Fprintln(meeting, at.Address()); err != nil {
		return nil, err
	}
	return at.Accept(ctx)
}

func (e *inside) dial(ctx context.Context, meeting *os.File) (link.Link, error) {
	address, err := bufio.NewReader(meeting).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the other process does not say where it listens: %w", err)
	}
	return e.made.Dial(ctx, transports.DialSpec{Address: strings.TrimSpace(address), From: e.host(0)})
}

// host is the address of a rank's site: as in the job file, one for both, or two.
func (e *inside) host(rank int) string {
	if needsTwoSites(e.transport) {
		return net.IPv4(127, 0, 0, byte(rank+2)).String()
	}
	return "127.0.0.1"
}

// join makes the rank, with a silent agent and a node that has given it the link.
func (e *inside) join() (*mpi.Proc, error) {
	var err error
	e.agent, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a link to an agent: %w", err)
	}
	agent, err := socket.New(e.agent[0], nil)
	if err != nil {
		return nil, err
	}
	proc, err := mpi.Join(e.job(), agent, machine.Local{}, deaf{})
	if err != nil {
		return nil, err
	}
	proc.Hear(wireup.Message{Kind: wireup.KindLink, Peer: wire.WorldRank(1 - e.rank), Transport: e.made.Info().Name}, e.link)
	return proc, nil
}

func (e *inside) job() *wireup.Job {
	j := &wireup.Job{
		Name: "bench", Rank: wire.WorldRank(e.rank), DataLen: config.DefaultDataLen, TagUB: config.DefaultTagUB,
		AckMark: config.DefaultAckMark, HiWater: config.DefaultHiWater, XSize: -1, MaxLinear: -1, Spin: "auto",
		Procs: make([]wireup.Proc, 2),
	}
	for r := range j.Procs {
		p := wireup.Proc{Host: make([]byte, len(wire.HostID{})), PID: int64(r) + 1, Path: wireup.PathDirect, Data: datatype.HostOrder().String()}
		if r == e.rank {
			p.Path = wireup.PathSelf
		}
		if needsTwoSites(e.transport) {
			p.Client, p.Node = wire.ClientRank(r), wire.HostRank(r)
		}
		j.Procs[r] = p
	}
	return j
}

// deaf is a node that ignores all messages.
type deaf struct{}

func (deaf) Send(wireup.Message) error { return nil }

// part waits until the other process has all that was sent to it.
func (e *inside) part() error {
	ctx, cancel := context.WithTimeout(context.Background(), insidePatience)
	defer cancel()
	if l, ok := e.link.(interface{ Done() <-chan struct{} }); ok {
		select {
		case <-l.Done():
		case <-ctx.Done():
			return errors.New("the other process did not accept its end of the link")
		}
	}
	t, ok := e.made.(interface {
		Drain(context.Context) error
		Close() error
	})
	if !ok {
		return nil
	}
	return errors.Join(t.Drain(ctx), t.Close())
}
