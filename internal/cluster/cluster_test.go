package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owner records what it is told.
type owner struct {
	self int

	mu      sync.Mutex
	waits   [][]int
	fails   chan string
	over    chan string
	signals chan int
	lost    chan string
	unfit   chan string
	stops   chan struct{}
	asked   chan struct{} // to wait
}

func newOwner(self int) *owner {
	return &owner{self: self, fails: make(chan string, 100), over: make(chan string, 100), signals: make(chan int, 100), lost: make(chan string, 100), unfit: make(chan string, 100), stops: make(chan struct{}, 100), asked: make(chan struct{})}
}

func (o *owner) Waits(hosts []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = append(o.waits, hosts)
}
func (o *owner) Fails(host int, report []byte)    { o.fails <- fmt.Sprint(host, " ", string(report)) }
func (o *owner) JobEnded(report []byte)           { o.over <- string(report) }
func (o *owner) Signal(number int)                { o.signals <- number }
func (o *owner) Lost(_ int, why error)            { o.lost <- why.Error() }
func (o *owner) LostBelow(hosts []int, why error) { o.lost <- fmt.Sprint("without ", hosts, ": ", why) }
func (o *owner) Unfit(host int, why error)        { o.unfit <- fmt.Sprint(host, " ", why) }
func (o *owner) Stop()                            { o.stops <- struct{}{} }
func (o *owner) Ask(ctx context.Context, question []byte) []byte {
	switch string(question) {
	case "wait":
		o.asked <- struct{}{}
		<-ctx.Done()
		return nil
	case "how long?":
		at, _ := ctx.Deadline()
		return []byte(time.Until(at).String())
	case "a lot":
		return make([]byte, neighbour.MaxAnswer+1)
	}
	return fmt.Appendf(nil, "%d: %s", o.self, question)
}

// site is all hosts of a site, in one process.
type site struct {
	t      *testing.T
	tree   membership.Tree
	head   net.Listener
	memory []listener // of all hosts, if they are connected by memory
	hosts  []*Host
	owners []*owner
	out    *transcript.Writer
	stdin  io.Reader
	change func(*Config)
}

// listener is where hosts connect to one that is in the same bubble of testing/synctest, in which a
// socket would stop the clock.
type listener struct {
	*rpc.Listener
	host int
}

func (l listener) Addr() net.Addr { return &net.UnixAddr{Name: fmt.Sprint(l.host), Net: "unix"} }

// newSiteInMemory makes a site for a test with a clock of its own.
func newSiteInMemory(t *testing.T, hosts, fan int) *site {
	t.Helper()
	s := makeSite(t, hosts, fan)
	for i := range hosts {
		s.memory = append(s.memory, listener{rpc.NewListener(), i})
	}
	s.head = s.memory[0]
	return s
}

// dial connects to a host of a site in memory.
func (s *site) dial(_ context.Context, address string) (net.Conn, error) {
	for _, l := range s.memory {
		if l.Addr().String() == address {
			near, far := net.Pipe()
			go l.Put(rpc.NewConn(far, nil))
			return near, nil
		}
	}
	return nil, fmt.Errorf("there is no host %q", address)
}

func newSite(t *testing.T, hosts, fan int) *site {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := makeSite(t, hosts, fan)
	s.head = ln
	return s
}

func makeSite(t *testing.T, hosts, fan int) *site {
	s := &site{t: t, tree: membership.Tree{Hosts: hosts, Fan: fan}, hosts: make([]*Host, hosts), out: &transcript.Writer{}}
	for i := range hosts {
		s.owners = append(s.owners, newOwner(i))
	}
	return s
}

func (s *site) config(i int) Config {
	c := Config{
		Tree: s.tree, Self: i, Name: func(h int) string { return fmt.Sprintf("node%d", h) }, Secret: []byte("secret"), Version: "1", File: []byte("file"),
		Listen: "127.0.0.1:0", Beat: 100 * time.Millisecond, Silence: time.Minute, Until: time.Now().Add(time.Minute),
		Stdout: func() io.Writer { return s.out }, Stderr: func() io.Writer { return s.out }, Stdin: s.stdin, Owner: s.owners[i],
	}
	if i == 0 {
		c.Listener = s.head
	} else {
		c.Head = s.head.Addr().String()
	}
	if s.memory != nil {
		c.Listener, c.Dial = s.memory[i], s.dial
	}
	if s.change != nil {
		s.change(&c)
	}
	return c
}

func (s *site) open(i int) error {
	h, err := Open(s.t.Context(), s.config(i))
	s.hosts[i] = h
	return err
}

// begin opens all hosts, last ones first, and takes them through the start.
func (s *site) begin() {
	s.t.Helper()
	var wg sync.WaitGroup
	for i := range slices.Backward(s.hosts) {
		wg.Go(func() {
			if err := s.open(i); err != nil {
				s.t.Error(err)
				return
			}
			if i == 0 {
				parts, err := s.hosts[0].Gather(s.t.Context(), []byte("part 0"))
				if err != nil {
					s.t.Error(err)
				}
				s.hosts[0].Start(bytes.Join(parts, []byte(",")))
				return
			}
			job, err := s.hosts[i].Report(s.t.Context(), fmt.Appendf(nil, "part %d", i))
			if n := bytes.Count(job, []byte(",")); err != nil || n != len(s.hosts)-1 || !bytes.Contains(job, fmt.Appendf(nil, "part %d", i)) {
				s.t.Errorf("host %d: %v, job %q", i, err, job)
			}
		})
	}
	wg.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

func (s *site) close() {
	var wg sync.WaitGroup
	for _, h := range s.hosts {
		if h != nil {
			wg.Go(func() { h.Close(10 * time.Second) })
		}
	}
	wg.Wait()
}

// TestLife takes sites of several shapes from their start to their end.
func TestLife(t *testing.T) {
	for _, shape := range [][2]int{{1, 32}, {2, 32}, {7, 2}, {5, 1}, {40, 3}} {
		t.Run(fmt.Sprintf("%d hosts, fan %d", shape[0], shape[1]), func(t *testing.T) {
			s := newSite(t, shape[0], shape[1])
			s.stdin = strings.NewReader(strings.Repeat("line\n", 50000))
			s.begin()
			if shape[0] == 1 {
				_ = s.head.Close() // nobody comes
			}
			last := len(s.hosts) - 1
			for _, from := range []int{0, last / 2, last} {
				for i := range s.hosts {
					if b, err := s.hosts[from].Ask(t.Context(), i, []byte("who?")); err != nil || string(b) != fmt.Sprintf("%d: who?", i) {
						t.Errorf("host %d answers host %d %q, %v", i, from, b, err)
					}
				}
			}
			s.hosts[0].Signal(10)
			if in, err := io.ReadAll(s.hosts[last].Stdin()); err != nil || len(in) != 250000 {
				t.Errorf("%d bytes of input, %v", len(in), err)
			}
			for i, h := range s.hosts[1:] {
				if n := <-s.owners[i+1].signals; n != 10 {
					t.Errorf("signal %d", n)
				}
				for k := range 50 {
					if _, err := fmt.Fprintf(h.Stdout(), "line %d of host %d\n", k, i+1); err != nil {
						t.Error(err)
					}
				}
			}
			for i, h := range s.hosts {
				select {
				case <-s.hosts[0].Finished():
					t.Fatalf("finished before host %d", i)
				default:
				}
				h.Finish()
			}
			<-s.hosts[0].Finished()
			s.hosts[0].End(nil)
			for _, o := range s.owners[1:] {
				if why := <-o.over; why != "" {
					t.Errorf("it is over: %q", why)
				}
			}
			for i, h := range s.hosts[1:] { // what comes last is not lost
				fmt.Fprintf(h.Stderr(), "goodbye of host %d\n", i+1)
			}
			s.close()
			out := s.out.String()
			for i := range s.hosts[1:] {
				if strings.Count(out, fmt.Sprintf(" of host %d\n", i+1)) != 51 {
					t.Errorf("the output of host %d is not whole", i+1)
				}
			}
			for _, o := range s.owners {
				if len(o.lost) > 0 {
					t.Errorf("lost: %s", <-o.lost)
				}
			}
		})
	}
}

// TestQuestionsWithoutAnAnswer: the host that asks gets the reason, and the site goes on.
func TestQuestionsWithoutAnAnswer(t *testing.T) {
	s := newSite(t, 7, 2)
	s.begin()
	if b, err := s.hosts[3].Ask(t.Context(), 6, []byte("a lot")); b != nil || err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := s.hosts[3].Ask(t.Context(), 6, make([]byte, maxQuestion+1)); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
	for _, nobody := range []int{-1, 7} {
		for _, from := range []int{0, 3} {
			if _, err := s.hosts[from].Ask(t.Context(), nobody, nil); !errors.Is(err, ErrAbsent) {
				t.Errorf("host %d of 7, asked by %d: %v", nobody, from, err)
			}
		}
	}
	limited, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	b, err := s.hosts[3].Ask(limited, 6, []byte("how long?"))
	if d, perr := time.ParseDuration(string(b)); err != nil || perr != nil || d <= 0 || d > 30*time.Second {
		t.Errorf("%q, %v: it is not told how long it has", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.owners[6].asked
		cancel()
	}()
	if _, err := s.hosts[3].Ask(ctx, 6, []byte("wait")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if b, err := s.hosts[3].Ask(t.Context(), 6, []byte("who?")); err != nil || string(b) != "6: who?" {
		t.Errorf("%q, %v", b, err)
	}
	s.hosts[0].End(nil)
	s.close()
	if n := s.hosts[3].asks.Waiting() + s.hosts[0].asks.Waiting(); n != 0 {
		t.Errorf("%d questions are kept", n)
	}
}

// TestAbsentHost cannot be asked, by the head or by another host.
func TestAbsentHost(t *testing.T) {
	s := newSite(t, 3, 2)
	for i := range 2 {
		if err := s.open(i); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range s.hosts[:2] {
		if _, err := h.Ask(t.Context(), 2, []byte("who?")); !errors.Is(err, ErrAbsent) {
			t.Errorf("host %d: %v", i, err)
		}
	}
	s.hosts[0].End(nil)
	s.close()
}

// TestFailures: reports of failures reach the head, and the end of the job reaches all
// hosts.
func TestFailures(t *testing.T) {
	s := newSite(t, 7, 2)
	s.begin()
	s.hosts[6].Fail([]byte("proc 3 was killed"))
	if got := <-s.owners[0].fails; got != "6 proc 3 was killed" {
		t.Error(got)
	}
	s.hosts[0].End([]byte("proc 3 of node6 was killed"))
	for _, o := range s.owners[1:] {
		if got := <-o.over; got != "proc 3 of node6 was killed" {
			t.Error(got)
		}
	}
	s.close()
}

// TestLostHost: the parent and the children of a lost host report it.
func TestLostHost(t *testing.T) {
	s := newSite(t, 7, 2)
	s.begin()
	lost := s.hosts[2]
	lost.up.link.conn.Conn.Close() // as if its machine were gone
	lost.server.Stop()
	for host, want := range map[int]string{0: "host node2 is lost", 5: "host node2 is lost", 6: "host node2 is lost"} {
		if got := <-s.owners[host].lost; !strings.Contains(got, want) {
			t.Errorf("host %d: %s", host, got)
		}
	}
	s.hosts[0].End([]byte("lost"))
	for _, h := range []int{1, 3, 4} {
		<-s.owners[h].over
	}
	s.close()
}

// TestGoesOnWithoutHosts: a site that goes on finishes without a host and those below it, which
// have lost their parent and cannot.
func TestGoesOnWithoutHosts(t *testing.T) {
	s := newSite(t, 7, 2)
	s.begin()
	for _, h := range s.hosts {
		SurviveLosses(h)
	}
	lost := s.hosts[2]
	lost.up.link.conn.Conn.Close() // as if its machine were gone
	lost.server.Stop()
	for host, want := range map[int]string{0: "without [2 5 6]: host node2 is lost", 5: "host node2 is lost", 6: "host node2 is lost"} {
		if got := <-s.owners[host].lost; !strings.HasPrefix(got, want) {
			t.Errorf("host %d: %s", host, got)
		}
	}
	for _, h := range []int{4, 0, 3, 1} {
		s.hosts[h].Finish()
	}
	<-s.hosts[0].Finished()
	s.hosts[0].End(nil)
	for _, h := range []int{1, 3, 4} {
		if got := <-s.owners[h].over; got != "" {
			t.Errorf("host %d: %s", h, got)
		}
	}
	s.close()
}

// TestSilentHost: a host whose connection exists but brings nothing is lost, too.
func TestSilentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSiteInMemory(t, 2, 2)
		s.change = func(c *Config) {
			if c.Self == 0 {
				c.Silence = 300 * time.Millisecond
			} else {
				c.Beat, c.Silence = time.Hour, 2*time.Hour
			}
		}
		s.begin()
		if got := <-s.owners[0].lost; !strings.Contains(got, "host node1 is lost: nothing was heard of it for") {
			t.Error(got)
		}
		s.hosts[0].End([]byte("lost"))
		begin := time.Now()
		s.hosts[0].Close(time.Hour) // it does not wait for a goodbye
		if took := time.Since(begin); took > lastWait {
			t.Errorf("it took %v", took)
		}
		s.close()
	})
}

// TestMissingHosts: missing hosts are named when the time is over, wherever in the tree
// they should be.
func TestMissingHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSiteInMemory(t, 7, 2)
		until := time.Now().Add(400 * time.Millisecond)
		s.change = func(c *Config) { c.Until = until }
		for _, i := range []int{0, 1, 3} {
			if err := s.open(i); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.hosts[0].Gather(t.Context(), nil)
		if !errors.Is(err, membership.ErrMissing) || !strings.HasSuffix(err.Error(), ": node2, node4, node5, node6") {
			t.Error(err)
		}
		s.hosts[0].End([]byte(err.Error()))
		if _, err := s.hosts[3].Report(t.Context(), nil); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
		s.close()
	})
}

// TestWhoMayNotCome: hosts with another secret, version or job file, hosts that do not
// belong here, and duplicates are told the reason at once.
func TestWhoMayNotCome(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"secret":  {func(c *Config) { c.Secret = []byte("guess") }, ErrSecret.Error()},
		"version": {func(c *Config) { c.Version = "2" }, `node1 has "2", node0 has "1"`},
		"file":    {func(c *Config) { c.File = []byte("old") }, ErrFile.Error()},
		"plugin": {func(c *Config) {
			c.Plugins = []*proto.Plugin{{Transport: "ofi", Version: "1.3.0", Platform: "plan9_arm", Sha256: "b"}}
		}, ErrPlugins.Error() + ": node1 has ofi 1.3.0, node0 has 1.2.3; copy impi.lock.hcl of node0 to node1, and run impi-node plugins install there"},
		"plugin file": {func(c *Config) {
			c.Plugins = []*proto.Plugin{{Transport: "ofi", Version: "1.2.3", Platform: "linux_amd64", Sha256: "b"}}
		}, "node1 and node0 have different files of ofi 1.2.3; copy"},
		"shape": {func(c *Config) { c.Self, c.Tree.Hosts = 7, 9 }, "host 7 of 3"},
		"twin":  {nil, membership.ErrTwice.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 3, 2)
			s.change = func(c *Config) {
				c.HostAt = func(netip.Addr) (int, bool) { return 1, true }
				c.Plugins = []*proto.Plugin{{Transport: "ofi", Version: "1.2.3", Platform: "linux_amd64", Sha256: "a"}}
			}
			if err := s.open(0); err != nil {
				t.Fatal(err)
			}
			if name == "twin" {
				if err := s.open(1); err != nil {
					t.Fatal(err)
				}
			}
			cfg := s.config(1)
			if c.change != nil {
				c.change(&cfg)
			}
			_, err := Open(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.head.Addr().String()) {
				t.Errorf("%v, which should say %q", err, c.want)
			}
			switch name { // the head's owner hears of those that cannot come any more
			case "secret", "version", "file", "plugin", "plugin file":
				if said := <-s.owners[0].unfit; !strings.HasPrefix(said, "1 ") || !strings.Contains(said, c.want) || !errors.Is(err, ErrUnfit) {
					t.Errorf("the head is told %q; the host: %v", said, err)
				}
			default:
				if errors.Is(err, ErrUnfit) != (name == "shape") || len(s.owners[0].unfit) > 0 {
					t.Errorf("the head is told that %d hosts are unfit; the host: %v", len(s.owners[0].unfit), err)
				}
			}
			s.hosts[0].End(nil)
			s.close()
		})
	}
}

// TestHostThatCannotBePart tells the head why, and hears how the job has ended; so do those that
// are not there yet, for which the head waits.
func TestHostThatCannotBePart(t *testing.T) {
	s := newSite(t, 4, 1) // host 2's parent never comes
	if err := errors.Join(s.open(0)); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error)
	for _, i := range []int{1, 2} {
		c := s.config(i)
		if i == 1 {
			c.Fails = []byte("no network")
		}
		go func() {
			_, err := Open(t.Context(), c)
			opened <- err
		}()
	}
	if said := <-s.owners[0].fails; said != "1 no network" {
		t.Errorf("the head hears %q", said)
	}
	s.hosts[0].End([]byte("it has no network"))
	dismissed := make(chan struct{})
	go func() {
		s.hosts[0].AwaitLateHosts(time.Hour)
		close(dismissed)
	}()
	for range 2 {
		if err := <-opened; !errors.Is(err, ErrOver) {
			t.Error(err)
		}
	}
	select {
	case <-dismissed:
		t.Error("the head does not wait for host 3")
	default:
	}
	c := s.config(3)
	if _, err := Open(t.Context(), c); !errors.Is(err, ErrOver) {
		t.Error(err)
	}
	<-dismissed
	for i, o := range s.owners[1:] {
		if said := <-o.over; said != "it has no network" {
			t.Errorf("host %d hears %q", i+1, said)
		}
	}
	s.close()
}

// TestHeadComesLate: hosts try to connect until the head is there or their time is over.
func TestHeadComesLate(t *testing.T) {
	s := newSite(t, 2, 2)
	dials := make(chan struct{}, 100)
	s.change = func(c *Config) {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			select {
			case dials <- struct{}{}:
			default:
			}
			if len(dials) < 3 {
				return nil, errors.New("no route to host")
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	s.begin()
	s.hosts[0].End(nil)
	s.close()

	never := newSite(t, 2, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cfg := never.config(1)
	_ = never.head.Close()
	if _, err := Open(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "host node1 cannot join its site, whose head is at 127.0.0.1:") {
		t.Error(err)
	}
}

// TestInputThatNeverEnds does not keep the head from leaving, though another host reads it.
func TestInputThatNeverEnds(t *testing.T) {
	s := newSite(t, 2, 2)
	never, end := io.Pipe()
	defer end.Close()
	s.stdin = never
	s.begin()
	in := make(chan error)
	go func() {
		_, err := io.ReadAll(s.hosts[1].Stdin())
		in <- err
	}()
	if _, err := end.Write([]byte("a line\n")); err != nil {
		t.Fatal(err)
	}
	s.hosts[0].End(nil)
	s.close()
	<-in
	_ = end.Close() // the pump reads on until then
}

// partial is a Writer that keeps what comes in lines, as launch.Output does.
type partial struct {
	to   *transcript.Writer
	line []byte
}

func (p *partial) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	if i := bytes.LastIndexByte(p.line, '\n') + 1; i > 0 {
		_, _ = p.to.Write(p.line[:i])
		p.line = append(p.line[:0], p.line[i:]...)
	}
	return len(b), nil
}

// TestLinesOfHostsDoNotMix: a line that one host writes in pieces is not mixed with
// another's.
func TestLinesOfHostsDoNotMix(t *testing.T) {
	s := newSite(t, 4, 1) // all by one way
	s.change = func(c *Config) { c.Stdout = func() io.Writer { return &partial{to: s.out} } }
	s.begin()
	for k := range 100 {
		for i, h := range s.hosts[1:] {
			text := fmt.Sprintf("piece %d of %d,", k, i+1)
			if k == 99 {
				text = " end\n"
			}
			if _, err := io.WriteString(h.Stdout(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.hosts[0].End(nil)
	s.close()
	for i := range s.hosts[1:] {
		want := ""
		for k := range 99 {
			want += fmt.Sprintf("piece %d of %d,", k, i+1)
		}
		if !strings.Contains(s.out.String(), want+" end\n") {
			t.Errorf("the line of host %d is not whole", i+1)
		}
	}
}

// TestOutputThatNobodyReads does not keep hosts from leaving.
func TestOutputThatNobodyReads(t *testing.T) {
	s := newSite(t, 2, 2)
	blocked, unblock := make(chan struct{}), make(chan struct{})
	s.change = func(c *Config) {
		c.Stdout = func() io.Writer {
			return writerFunc(func(b []byte) (int, error) {
				close(blocked)
				<-unblock
				return len(b), nil
			})
		}
	}
	s.begin()
	if _, err := io.WriteString(s.hosts[1].Stdout(), "line\n"); err != nil {
		t.Fatal(err)
	}
	<-blocked
	s.hosts[0].End(nil)
	var wg sync.WaitGroup
	for _, h := range s.hosts {
		wg.Go(func() { h.Close(time.Millisecond) })
	}
	wg.Wait() // else the test hangs
	close(unblock)
	s.close()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestWhoComesAfterTheEnd: a host that connects after the end is told that the job is over, by the
// head or by a parent that it has been told of before.
func TestWhoComesAfterTheEnd(t *testing.T) {
	s := newSite(t, 3, 1)
	if err := errors.Join(s.open(0), s.open(1)); err != nil {
		t.Fatal(err)
	}
	s.hosts[0].End([]byte("failed"))
	<-s.owners[1].over
	for _, at := range []string{s.head.Addr().String(), s.hosts[1].Address()} {
		s.change = func(c *Config) { c.Head = at }
		if err := s.open(2); err == nil || !strings.Contains(err.Error(), ErrOver.Error()) {
			t.Errorf("%s: %v", at, err)
		}
	}
	s.hosts[2] = nil
	s.close()
}

// TestLinger: a host whose procs outlive the job keeps those above it there, for longer than they
// wait for one that says nothing, and its output arrives.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSiteInMemory(t, 3, 1)
		s.begin()
		s.hosts[0].End(nil)
		leave := s.hosts[2].KeepParents()
		var wg sync.WaitGroup
		gone := make(chan struct{}, 2)
		for _, h := range s.hosts[:2] {
			wg.Go(func() {
				h.Close(300 * time.Millisecond)
				gone <- struct{}{}
			})
		}
		select {
		case <-gone:
			t.Fatal("a host left, and one below it stays")
		case <-time.After(time.Second):
		}
		if _, err := fmt.Fprintln(s.hosts[2].Stdout(), "late"); err != nil {
			t.Error(err)
		}
		leave()
		s.hosts[2].Close(time.Minute)
		wg.Wait()
		if s.out.String() != "late\n" {
			t.Errorf("%q", s.out)
		}
	})
}

// TestStop reaches all hosts below the head, as does the end of their parent.
func TestStop(t *testing.T) {
	s := newSite(t, 3, 1)
	s.begin()
	s.hosts[0].End(nil)
	s.hosts[0].Stop()
	<-s.owners[1].stops
	<-s.owners[2].stops
	s.hosts[0].Close(0)
	<-s.owners[1].stops
	s.close()
}

// TestSeeks: a host waits for the head first, and then for the parent that is not there, by name.
func TestSeeks(t *testing.T) {
	s := newSite(t, 3, 1)
	sought := make(chan int, 100)
	s.change = func(c *Config) { c.Seeks = func(host int) { sought <- host } }
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	c := s.config(2)
	c.Head = "127.0.0.1:1" // nobody is there
	dials := 0
	c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		if dials++; dials > 1 {
			address = s.head.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err := s.open(0); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := Open(ctx, c)
		failed <- err
	}()
	if a, b := <-sought, <-sought; a != 0 || b != 1 {
		t.Errorf("host 2 waits for host %d and then for %d", a, b)
	}
	cancel()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "host node2 cannot join its site") || !strings.Contains(err.Error(), "host node1, its parent, has not joined") {
		t.Error(err)
	}
	s.hosts[0].Close(0)
}

// TestUnreachedParent: a host that does not reach its parent, which has said where it listens, has
// the head end the start with both addresses. The clock is that of the test: what is waited for is
// long before the head's own limit.
func TestUnreachedParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSiteInMemory(t, 3, 1)
		began := time.Now()
		s.change = func(c *Config) {
			c.Until = began.Add(5 * time.Minute)
			c.Report = func(why error) []byte { return []byte(why.Error()) }
			if dial := c.Dial; c.Self == 2 {
				c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
					if address == c.Head {
						return dial(ctx, address)
					}
					<-ctx.Done() // packets vanish
					return nil, ctx.Err()
				}
			}
		}
		for i := range 2 {
			if err := s.open(i); err != nil {
				t.Fatal(err)
			}
		}
		opened := make(chan error, 1)
		go func() { opened <- s.open(2) }()
		said := <-s.owners[0].fails
		if !strings.HasPrefix(said, "2 ") || !strings.Contains(said, "host node1 at 1 was not reached from ") || !strings.Contains(said, Remedy) {
			t.Errorf("the head hears %q", said)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the head hears it after %v", took)
		}
		s.hosts[0].End([]byte("over"))
		if err := <-opened; !errors.Is(err, ErrOver) {
			t.Error(err)
		}
		s.close()
	})
}

// TestUnreachedHead: a host that knows that its head listens gives up where it does not reach it;
// one that does not know waits.
func TestUnreachedHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSiteInMemory(t, 2, 1)
		began := time.Now()
		s.change = func(c *Config) {
			c.HeadListens = true
			c.Dial = func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }
		}
		err := s.open(1)
		if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "host node0 at 0 was not reached from ") || !strings.Contains(err.Error(), `write head = "ADDRESS:PORT"`) {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it gives up after %v", took)
		}
	})
}

// Hosts of several platforms have the same version, and files of their own.
func TestPluginsOfSeveralPlatforms(t *testing.T) {
	c := &Config{Name: func(host int) string { return fmt.Sprint("node", host) }, Plugins: []*proto.Plugin{{Transport: "ofi", Version: "1.2.3", Platform: "linux_amd64", Sha256: "a"}}}
	theirs := []*proto.Plugin{{Transport: "mine", Version: "9.0.0"}, {Transport: "ofi", Version: "1.2.3", Platform: "linux_arm64", Sha256: "b"}}
	if why := c.otherPlugin(1, theirs); why != "" {
		t.Error(why)
	}
}
