package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/door"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// Errors of hosts.
var (
	// ErrSecret means that two hosts do not have the same secret.
	ErrSecret = errors.New("the hosts do not have the same secret of the job")
	// ErrVersion means that two hosts run different versions of impi-node.
	ErrVersion = errors.New("the hosts run different versions of impi-node")
	// ErrFile means that two hosts have read different descriptions of the site.
	ErrFile = errors.New("the hosts have different job files")
	// ErrOver means that the head has ended the job before it began.
	ErrOver = errors.New("the head has ended the job")
)

var kind = door.Kind{Protocol: "impi-cluster/1", Name: "impi cluster", Denied: ErrSecret, Version: ErrVersion}

// Bounds.
const (
	maxWord  = 64 << 20 // bytes of a message: the parts of a site's hosts
	chunk    = 64 << 10 // bytes of output or input in a message
	greeting = 10 * time.Second
	lastWait = 5 * time.Second
)

// Owner is told what happens. Its methods are called by goroutines of a Host, several at a
// time, and must not wait for other methods of the Host.
type Owner interface {
	// Waits tells the head which hosts are not there yet, whenever that changes.
	Waits(hosts []int)
	// Fails hands the head a host's report about the end of the job.
	Fails(host int, report []byte)
	// Over hands the head's word that the job is over to the other hosts: empty if it went
	// well.
	Over(report []byte)
	// Signal is for the procs.
	Signal(number int)
	// Lost says that a host, the one above or one below, is lost. The site cannot go on.
	Lost(host int, why error)
	// Ask answers a question of any host's, until ctx ends.
	Ask(ctx context.Context, question []byte) (answer []byte)
}

// Config is what a Host is made of.
type Config struct {
	Tree    membership.Tree
	Self    int
	Name    func(host int) string // for messages
	Secret  []byte                // of the job; all hosts have it
	Version string                // of impi-node
	File    []byte                // digest of what the job file says of the site

	Listen string // "ip:port" for the hosts below; port 0 takes a free one
	Head   string // "ip:port" of the head; empty at the head
	// Listener is where the head takes connections, if it is open already. Listen is not
	// looked at then.
	Listener net.Listener
	Dial     func(ctx context.Context, address string) (net.Conn, error) // nil: TCP

	Beat, Silence time.Duration // signs of life, and after which time without one a host is lost
	Until         time.Time     // all hosts must be there by then

	// Stdout and Stderr give the head what it writes the output of a host to: one Writer for
	// each host, which is used by one goroutine at a time.
	Stdout, Stderr func() io.Writer
	Stdin          io.Reader // at the head; nil: empty
	Owner          Owner
	Logger         hclog.Logger
}

// Host is one host's place in the tree.
type Host struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	log    hclog.Logger

	ln     net.Listener // nil if no host connects here
	door   *door.Door
	server *grpc.Server
	proved *rpc.Listener
	up     *above // nil at the head

	mu       sync.Mutex
	member   *membership.Member
	below    map[int]*queue[*proto.Down]
	listens  map[int]string   // where hosts with hosts below them listen; at the head
	placed   chan struct{}    // closed, and made anew, when listens changes
	gone     map[int]struct{} // children that have said bye
	wake     chan struct{}    // the clock's goroutine must look again
	whole    chan struct{}    // closed when parts is there; at the head
	parts    [][]byte
	started  chan struct{} // closed when job is there; not at the head
	job      []byte
	finished chan struct{} // closed when the hosts below and this one have finished
	left     chan struct{} // a child has said bye, or is gone
	ended    bool          // the head has said that the job is over
	failed   error         // why the site is not whole
	broken   chan struct{} // closed with failed
	asks     questions
	outputs  map[outputOf]io.Writer // of the hosts; at the head
	stdin    chan []byte            // what comes from cfg.Stdin, once somebody reads it
	pumping  sync.Once              // of pump
}

// outputOf is one of the outputs of a host.
type outputOf struct {
	host  int
	error bool
}

// Open connects a host with its parent and takes connections of its children. It blocks until
// the parent has taken it, which it tries again and again until ctx ends.
func Open(ctx context.Context, cfg Config) (*Host, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	h := &Host{
		cfg: cfg, log: cfg.Logger, below: make(map[int]*queue[*proto.Down]), listens: make(map[int]string), placed: make(chan struct{}),
		outputs: make(map[outputOf]io.Writer), stdin: make(chan []byte),
		gone: make(map[int]struct{}), wake: make(chan struct{}, 1), whole: make(chan struct{}), started: make(chan struct{}),
		finished: make(chan struct{}), left: make(chan struct{}, 1), broken: make(chan struct{}), asks: questions{waiting: make(map[uint64]chan *proto.Message)},
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	var err error
	h.member, err = membership.New(membership.Config{
		Tree: cfg.Tree, Self: cfg.Self, Beat: cfg.Beat, Silence: cfg.Silence, Until: cfg.Until,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	if cfg.Self != 0 {
		h.up = &above{h: h, host: cfg.Tree.Parent(cfg.Self), out: newQueue[*proto.Up](), heard: make(chan struct{})}
	}
	if err := h.listen(); err != nil {
		return nil, err
	}
	if h.up != nil {
		if err = h.up.connect(ctx); err != nil {
			h.Close(0)
			return nil, err
		}
	}
	h.wg.Go(h.clock)
	return h, nil
}

// Address is where hosts below connect: "ip:port".
func (h *Host) Address() string {
	if h.ln == nil {
		return ""
	}
	return h.ln.Addr().String()
}

// Gather gives the head what all hosts have, by host. It blocks until all are there.
func (h *Host) Gather(ctx context.Context, own []byte) ([][]byte, error) {
	h.with(func(m *membership.Member, now time.Time) { m.Submit(own, now) })
	select {
	case <-h.whole:
		return h.parts, nil
	case <-h.broken:
		return nil, h.failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Start hands what the head has found out down to all hosts.
func (h *Host) Start(job []byte) { h.tellBelow(&proto.Down{Word: &proto.Down_Job{Job: job}}) }

// Report gives the head what this host has, and waits for what it makes of that. It blocks
// until all hosts are there.
func (h *Host) Report(ctx context.Context, own []byte) (job []byte, err error) {
	h.with(func(m *membership.Member, now time.Time) { m.Submit(own, now) })
	select {
	case <-h.started:
		return h.job, nil
	case <-h.broken:
		return nil, h.failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Finish says that this host has done its share of a job that goes well.
func (h *Host) Finish() { h.with(func(m *membership.Member, now time.Time) { m.Finish(now) }) }

// Finished is closed when this host and all below it have finished: at the head, all.
func (h *Host) Finished() <-chan struct{} { return h.finished }

// Fail tells the head why the job cannot go on.
func (h *Host) Fail(report []byte) {
	if h.up != nil {
		h.up.tell(&proto.Up{Word: &proto.Up_Fails{Fails: &proto.Message{Host: int32(h.cfg.Self), Data: report}}})
	}
}

// End is the head's word to all hosts that the job is over; report is empty if it went well.
// Hosts that leave or are lost after this are no news.
func (h *Host) End(report []byte) {
	h.with(func(m *membership.Member, _ time.Time) {
		m.End()
		h.ended = true
	})
	h.tellBelow(&proto.Down{Word: &proto.Down_Over{Over: report}})
}

// Signal sends a signal to the procs of all other hosts.
func (h *Host) Signal(number int) {
	h.tellBelow(&proto.Down{Word: &proto.Down_Signal{Signal: int32(number)}})
}

// Close leaves: the last output is written, the hosts below have left. It waits for that for
// limit at most, and then for what nobody can interrupt, a write to an output that nobody
// reads, no longer than lastWait.
func (h *Host) Close(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	h.with(func(m *membership.Member, _ time.Time) { m.End() })
	for ctx.Err() == nil && h.stays() {
		select {
		case <-h.left:
		case <-ctx.Done():
		}
	}
	if h.up != nil {
		h.up.leave(ctx)
	}
	h.mu.Lock() // of begin
	h.cancel(net.ErrClosed)
	h.mu.Unlock()
	if d, ok := h.cfg.Stdin.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = d.SetReadDeadline(time.Unix(1, 0)) // ends pump, where the system can do that
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if h.ln != nil {
			h.door.Close()
			_ = h.ln.Close()
			h.mu.Lock()
			for _, q := range h.below {
				q.end()
			}
			h.mu.Unlock()
			h.server.Stop()
		}
		h.wg.Wait()
	}()
	select {
	case <-gone:
	case <-time.After(lastWait):
	}
}

// stays reports whether a host below has neither said that it leaves nor gone.
func (h *Host) stays() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.below) > len(h.gone)
}

func (h *Host) tellBelow(w *proto.Down) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range h.below {
		q.add(w)
	}
}
