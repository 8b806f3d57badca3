package mpi

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// node is the node's side of a proc's start, played by a test.
type node struct {
	t       *testing.T
	control *wireup.Conn
	agent   *socket.Link // the agent's end of the proc's link
}

// startUnder starts a proc as a node does: the control socket comes through the
// environment. The node answers its hello with welcome.
func startUnder(t *testing.T, job *wireup.Job, welcome wireup.Message) (*proc.Process, *node, error) {
	t.Helper()
	control, f, err := wireup.Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	t.Setenv(wireup.EnvSocket, strconv.Itoa(fd))
	n := &node{t: t, control: control}
	answered := make(chan error, 1)
	go func() { answered <- n.welcome(job, welcome) }()
	conn, ok, err := wireup.Inherited()
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	p, err := life.Join(proc.NodeConn{Conn: conn}, machine.Local{})
	t.Cleanup(func() {
		if p != nil {
			p.State.Store(int32(proc.Ended)) // the node goes, and that is no news
		}
		_ = control.Close()
	})
	if nerr := <-answered; nerr != nil {
		t.Fatal(nerr)
	}
	return p, n, err
}

func (n *node) welcome(job *wireup.Job, m wireup.Message) error {
	hello, _, err := n.control.Recv()
	if err != nil || hello.Kind != wireup.KindHello || hello.Version != wireup.Version {
		return errors.Join(err, errors.New("no hello"))
	}
	table := splitProcs(job)
	memory, err := job.Share()
	if err != nil {
		return err
	}
	defer memory.Close()
	procs, err := wireup.ShareProcs(&table)
	if err != nil {
		return err
	}
	defer procs.Close()
	ours, theirs, err := ends()
	if err != nil {
		return err
	}
	defer unix.Close(theirs)
	n.agent = ours
	return n.control.Send(m, theirs, int(memory.Fd()), int(procs.Fd()))
}

// ends makes a link and the descriptor of its other end.
func ends() (l *socket.Link, fd int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, err
	}
	l, err = socket.New(fds[0], nil)
	return l, fds[1], err
}

// sendLink sends the proc a direct link to rank 1, and returns the other end.
func (n *node) sendLink(t *testing.T) *socket.Link {
	t.Helper()
	direct, fd, err := ends()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.control.Send(wireup.Message{Kind: wireup.KindLink, Peer: 1, Transport: "unix"}, fd); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	return direct
}

var goodWelcome = wireup.Message{Kind: wireup.KindWelcome, Version: wireup.Version}

// packet reads one packet with n bytes of data from a link.
func packet(t *testing.T, l link.Link, n int) (h wire.Packet, data []byte) {
	t.Helper()
	b := make([]byte, wire.HeaderSize+n)
	for got := 0; got < len(b); {
		k, err := l.Recv([][]byte{b[got:]})
		if err != nil {
			t.Fatal(err)
		}
		got += k
	}
	wire.Published.Header(b, &h)
	return h, b[wire.HeaderSize:]
}

func TestDirectLinkIsAskedForAndUsed(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 2}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- Ssend((*Comm)(p.Comms.World), []byte("hello"), 1, 3) }()
	ask, _, err := n.control.Recv()
	if err != nil || ask.Kind != wireup.KindOpen || ask.Peer != 1 {
		t.Fatalf("got %+v, %v", ask, err)
	}
	direct := n.sendLink(t)
	h, data := packet(t, direct, 5)
	if h.Type != wire.PkDataSync || h.Tag != 3 || !bytes.Equal(data, []byte("hello")) {
		t.Errorf("got %v %q", h.Type, data)
	}
	ack := wire.Packet{Type: wire.PkSyncAck, Src: h.Dest, Dest: h.Src, SrcReq: h.SrcReq}
	b := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(b, &ack)
	put(t, direct, b)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// A connection of a resumable link may break on its way from the node: it is lost as
// any other, and a further one is asked for, not the end of the link.
func TestLastingLinkThatArrivesBroken(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 2}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- Ssend((*Comm)(p.Comms.World), []byte("hello"), 1, 3) }()
	terms := wireup.Resumable{Session: make([]byte, 16), Dialler: true, Window: 1 << 16, Limit: time.Hour}
	for i := range 3 {
		ask, _, err := n.control.Recv()
		if err != nil || ask.Kind != wireup.KindOpen || ask.Peer != 1 || (ask.Resumable != nil) != (i > 0) {
			t.Fatalf("ask %d: %+v, %v", i, ask, err)
		}
		if i > 0 && (!ask.Resumable.Again || !strings.Contains(ask.Reason, "not connected")) {
			t.Errorf("ask %d: %+v", i, ask)
		}
		dead, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) // as after a reset
		if err != nil {
			t.Fatal(err)
		}
		terms.Again = i > 0
		if err := n.control.Send(wireup.Message{Kind: wireup.KindLink, Peer: 1, Transport: "tcp", Resumable: &terms}, dead); err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(dead)
	}
	select {
	case err := <-sent:
		t.Errorf("it does not wait for the link: %v", err)
	default:
	}
	p.Lock()
	p.SetFailed(errors.New("the test is over"))
	p.Unlock()
	if err := <-sent; !errors.Is(err, ErrJobOver) {
		t.Error(err)
	}
}

func TestRefusedLinkGoesThroughTheAgent(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 2}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Isend((*Comm)(p.Comms.World), []byte("abc"), 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	if ask, _, err := n.control.Recv(); err != nil || ask.Kind != wireup.KindOpen {
		t.Fatalf("got %+v, %v", ask, err)
	}
	if err := n.control.Send(wireup.Message{Kind: wireup.KindLink, Peer: 1, Reason: "for the test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Wait(); err != nil {
		t.Fatal(err)
	}
	if h, data := packet(t, n.agent, 3); h.Tag != 4 || string(data) != "abc" {
		t.Errorf("got %v %q", h, data)
	}
}

func TestChannelPathAsksForNothing(t *testing.T) {
	job := layout{procs: 2}.job(0)
	job.Procs[1].Path = wireup.PathChannel
	p, n, err := startUnder(t, job, goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := Send((*Comm)(p.Comms.World), []byte("abc"), 1, 4); err != nil {
		t.Fatal(err)
	}
	if h, _ := packet(t, n.agent, 3); h.Tag != 4 {
		t.Errorf("got %v", h)
	}
}

// What a receive brings about for a peer without a route leaves at once: the
// program may compute for long after it.
func TestReceiveAnswersAPeerWithoutARoute(t *testing.T) {
	job := layout{procs: 2}.job(0)
	job.Procs[1].Path = wireup.PathChannel
	p, n, err := startUnder(t, job, goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(b, &wire.Packet{Type: wire.PkDataSync, Src: p.Eng.Proc(1), Dest: p.Eng.Proc(0), SrcReq: 5, LSRank: 1})
	put(t, n.agent, b)
	if _, err := Probe((*Comm)(p.Comms.World), 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Recv((*Comm)(p.Comms.World), []byte{}, 1, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := n.agent.Recv([][]byte{b}); n != len(b) || err != nil {
		t.Fatalf("no answer: %d bytes, %v", n, err)
	}
	var h wire.Packet
	if wire.Published.Header(b, &h); h.Type != wire.PkSyncAck || h.SrcReq != 5 {
		t.Errorf("got %v", h)
	}
}

func TestLinkThatThePeerOpenedIsUsedBothWays(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 2}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	direct := n.sendLink(t)
	peers := layout{procs: 2}.job(0).Procs
	h := wire.Packet{Type: wire.PkData, Src: peers[1].Identity(), Dest: peers[0].Identity(), LSRank: 1, Len: 1, MsgLen: 1}
	b := make([]byte, wire.HeaderSize+1)
	wire.Published.PutHeader(b, &h)
	put(t, direct, b)
	if _, err := Recv((*Comm)(p.Comms.World), make([]byte, 1), 1, 0); err != nil {
		t.Fatal(err)
	}
	if err := Send((*Comm)(p.Comms.World), []byte("back"), 1, 9); err != nil {
		t.Fatal(err)
	}
	if h, _ := packet(t, direct, 4); h.Tag != 9 {
		t.Errorf("got %v", h)
	}
}

func TestBrokenLinkWaitsForTheNodesWord(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 2}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	p.Endpoints.Grace = time.Hour
	direct := n.sendLink(t)
	_ = direct.Close()
	q, err := Irecv((*Comm)(p.Comms.World), make([]byte, 1), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Lock()
	for len(p.Endpoints.List) < 2 || p.Endpoints.List[1] != nil { // until the link has come and gone
		p.AwaitProgress()
	}
	p.Endpoints.Grace = 0
	p.Unlock()
	if done, _, err := q.Test(); done || err != nil {
		t.Errorf("the program is told before the node: %v, %v", done, err)
	}
	p.Lock()
	p.Endpoints.List[proc.AgentLink].Drop(io.EOF)
	p.Unlock()
	if _, err := q.Wait(); !errors.Is(err, ErrJobOver) || !errors.Is(err, ErrPeerGone) {
		t.Errorf("once the grace is over: %v", err)
	}
}

// TestAgentThatEndsDuringFinalize: the agent waits for its procs. When it does
// not, nobody can be heard any more, even who was not heard of before.
func TestAgentThatEndsDuringFinalize(t *testing.T) {
	p, n, err := startUnder(t, layout{procs: 2}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	p.State.Store(int32(proc.Finalizing))
	if err := n.agent.CloseSend(); err != nil {
		t.Fatal(err)
	}
	p.Lock()
	for p.Endpoints.List[proc.AgentLink] != nil {
		p.AwaitProgress()
	}
	p.Unlock()
	if _, err := Recv((*Comm)(p.Comms.World), make([]byte, 1), 1, 0); !errors.Is(err, ErrJobOver) || !errors.Is(err, ErrPeerGone) {
		t.Errorf("got %v", err)
	}
}

// TestLinkRefusedWithoutAnAgent: who cannot be reached in any way is down.
func TestLinkRefusedWithoutAnAgent(t *testing.T) {
	p, _, err := startUnder(t, layout{procs: 2}.job(0), goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	p.Lock()
	defer p.Unlock()
	p.Endpoints.Grace = 0
	p.Endpoints.List[proc.AgentLink].GiveUp(io.EOF)
	p.Node.Take(proc.LinkMessage{Msg: wireup.Message{Kind: wireup.KindLink, Peer: 1, Reason: "no way"}})
	if err := p.Eng.Unreachable(1); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestNodeOfAnotherVersion(t *testing.T) {
	m := goodWelcome
	m.Version++
	if _, _, err := startUnder(t, layout{procs: 2}.job(0), m); !errors.Is(err, ErrNode) {
		t.Errorf("got %v", err)
	}
}

func TestJobThatMakesNoSense(t *testing.T) {
	job := layout{procs: 2}.job(0)
	job.Procs[1].Data = "ebcdic"
	if _, _, err := startUnder(t, job, goodWelcome); err == nil {
		t.Error("an unknown representation was taken")
	}
	job = layout{procs: 2}.job(0)
	job.Spin = "fast"
	if _, _, err := startUnder(t, job, goodWelcome); err == nil {
		t.Error("an unknown spin setting was taken")
	}
}

func TestTraceShowsPackets(t *testing.T) {
	job := layout{procs: 2}.job(0)
	job.Trace = t.TempDir() + "/trace"
	job.Procs[1].Path = wireup.PathChannel
	p, n, err := startUnder(t, job, goodWelcome)
	if err != nil {
		t.Fatal(err)
	}
	if err := Send((*Comm)(p.Comms.World), []byte("abc"), 1, 42); err != nil {
		t.Fatal(err)
	}
	packet(t, n.agent, 3)
	text, err := os.ReadFile(job.Trace)
	if err != nil || !bytes.Contains(text, []byte("DATA")) || !bytes.Contains(text, []byte("42")) {
		t.Errorf("trace %q, %v", text, err)
	}
}
