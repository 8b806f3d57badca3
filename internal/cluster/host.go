package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/auth"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// The errors of hosts.
var (
	// ErrSecret means that two hosts do not have the same secret.
	ErrSecret = errors.New("the hosts do not have the same secret of the job")
	// ErrCertificate means that a host does not accept the certificate of another.
	ErrCertificate = errors.New("the hosts do not accept each other's certificates")
	// ErrVersion means that two hosts run different versions of impi-node.
	ErrVersion = errors.New("the hosts run different versions of impi-node")
	// ErrFile means that two hosts have read different job files for the site.
	ErrFile = errors.New("the hosts have different job files")
	// ErrPlugins means that two hosts would run different versions of a plugin.
	ErrPlugins = errors.New("the hosts have different versions of a plugin")
	// ErrUnfit means that the head has rejected a host for one of these reasons.
	ErrUnfit = errors.New("the host cannot be part of the site")
	// ErrOver means that the head has ended the job before it began.
	ErrOver = errors.New("the head has ended the job")
)

var kind = auth.Kind{Protocol: "impi-cluster/1", Name: "impi cluster", Denied: ErrSecret, Version: ErrVersion}

// Limits.
const (
	maxWord  = 64 << 20 // bytes of a message: the parts of all hosts of a site
	chunk    = 64 << 10 // bytes of output or input in a message
	greeting = 10 * time.Second
	lastWait = 5 * time.Second
)

// Owner receives the events of a Host. Its methods are called by goroutines of the Host, several at
// a time, and must not wait for other methods of the Host.
type Owner interface {
	// Waits is called at the head whenever the set of hosts that are not there yet changes.
	Waits(hosts []int)
	// Fails is called at the head with a host's report about the end of the job.
	Fails(host int, report []byte)
	// JobEnded is called at the other hosts when the head has ended the job; report is empty if it
	// went well.
	JobEnded(report []byte)
	// Signal is called with a signal for the procs.
	Signal(number int)
	// Stop is called at the other hosts when everything that outlives the job must end, since the
	// head has sent Stop or the parent is gone.
	Stop()
	// Unfit is called at the head if a host which is not there yet cannot be part of the site,
	// since its version, its job file or its key differs.
	Unfit(host int, why error)
	// Lost is called when the parent or a child is lost. The site cannot continue.
	Lost(host int, why error)
	// LostBelow is called when a child and all hosts below it are lost, and the site continues
	// without them, since SurviveLosses was called.
	LostBelow(hosts []int, why error)
	// Ask returns the answer to a question of any host. It may take until ctx ends.
	Ask(ctx context.Context, question []byte) (answer []byte)
}

// Config configures a Host.
type Config struct {
	Tree   membership.Tree
	Self   int
	Name   func(host int) string // a host's name in messages
	Secret []byte                // of the job; all hosts have it
	// Identity is the host's certificate, and determines which certificates of other hosts it
	// accepts. Nil: this host has none, and accepts every host that has the secret.
	Identity *identity.Identity
	Version  string          // of impi-node
	File     []byte          // digest of the site's part of the job file
	Plugins  []*proto.Plugin // of the lock file

	Listen string       // "ip:port" for the hosts below; port 0 takes a free one
	Ports  config.Ports // ports that port 0 chooses from; zero: all
	Head   string       // "ip:port" of the head; empty at the head
	// HeadListens is set if the head listens at Head already: then it is an error if the head is
	// not reached soon.
	HeadListens bool
	// Listener is the head's listener if it is open already. Listen is ignored then.
	Listener net.Listener
	Dial     func(ctx context.Context, address string) (net.Conn, error) // nil: TCP
	// HostAt returns, at the head, the host that has an address, if one has. A host that connects
	// from there with a wrong secret is unfit. Nil: no host is unfit for that.
	HostAt func(netip.Addr) (host int, ok bool)
	// Fails is a report: why this host cannot be part of the site. Open sends it to the head, and
	// fails with ErrOver once Owner.JobEnded has been called. Nil: the host can be part of the site.
	Fails []byte
	// Report returns a report of an error that Open has while it connects: why this host cannot be
	// part of the site. Open then continues as with Fails. It is called by one goroutine at a time.
	// Nil: Open fails.
	Report func(why error) []byte
	// Seeks is called with the number of the host that Open waits for: the head, or the parent that
	// the head has named. It may be nil.
	Seeks func(host int)

	Beat, Silence time.Duration // between two signs of life; after which without one a host is lost
	Until         time.Time     // when all hosts must be there

	// Stdout and Stderr return a Writer for the output of one host, at the head. They are called
	// once for each host, and one goroutine at a time uses it.
	Stdout, Stderr func() io.Writer
	Stdin          io.Reader // at the head; nil: empty
	Owner          Owner
	Logger         hclog.Logger
}

// Host is one host's place in the tree.
type Host struct {
	cfg    Config
	ctx    context.Context // done after Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	log    hclog.Logger

	ln     net.Listener // nil if no host connects here
	auth   *auth.Server
	server *grpc.Server
	proved *rpc.Listener
	up     *above // nil at the head

	mu       sync.Mutex
	member   *membership.Member
	below    map[int]*queue[*proto.Down]
	moving   map[[idSize]byte]*rpc.ReplaceableConn // connections from hosts below that move, by ID
	listens  map[int]string                        // at the head: the addresses of the hosts that have hosts below them
	placed   chan struct{}                         // closed and replaced when listens, ended or informed changes
	gone     map[int]struct{}                      // children that have sent that they leave
	wake     chan struct{}                         // wakes clock when a deadline has changed
	whole    chan struct{}                         // at the head: closed when parts is set
	parts    [][]byte
	started  chan struct{} // not at the head: closed when job is set
	job      []byte
	finished chan struct{} // closed when this host and those below have finished
	left     chan struct{} // has an element if a child leaves, or is gone
	ended    bool          // the head has ended the job
	verdict  []byte        // the head's report about the end
	called   map[int]bool  // at the head: the hosts that have reached it
	informed map[int]bool  // at the head: the missing hosts that were sent why they are unfit
	stayed   time.Time     // when a host below has last sent that it stays
	awaited  bool          // AwaitBelow has been called
	failed   error         // why the site cannot run
	broken   chan struct{} // closed with failed
	asks     neighbour.Questions
	outputs  map[outputOf]io.Writer // at the head: outputs of the hosts
	stdin    chan []byte            // input from cfg.Stdin, once a host reads it
	pumping  sync.Once              // starts pump
}

type outputOf struct {
	host  int
	error bool
}

// Open connects a host to its parent and accepts connections of its children. It blocks until the
// parent has accepted it; it retries until ctx ends.
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
		cfg: cfg, log: cfg.Logger, below: make(map[int]*queue[*proto.Down]), moving: make(map[[idSize]byte]*rpc.ReplaceableConn), listens: make(map[int]string), placed: make(chan struct{}),
		outputs: make(map[outputOf]io.Writer), stdin: make(chan []byte),
		gone: make(map[int]struct{}), wake: make(chan struct{}, 1), whole: make(chan struct{}), started: make(chan struct{}),
		finished: make(chan struct{}), left: make(chan struct{}, 1), broken: make(chan struct{}), informed: make(map[int]bool), called: make(map[int]bool), asks: neighbour.Questions{Self: cfg.Self},
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	var err error
	h.member, err = membership.New(membership.Config{
		Tree: cfg.Tree, Self: cfg.Self, Beat: cfg.Beat, Silence: cfg.Silence, Deadline: cfg.Until,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	if cfg.Self != 0 {
		h.up = &above{h: h, host: cfg.Tree.Parent(cfg.Self), fails: cfg.Fails, out: newQueue[*proto.Up](), heard: make(chan struct{}), renew: make(chan struct{}, 1)}
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

// Address returns the address where hosts below connect: "ip:port".
func (h *Host) Address() string {
	if h.ln == nil {
		return ""
	}
	return h.ln.Addr().String()
}

// Gather returns, at the head, the reports of all hosts, by host. It blocks until all are there.
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

// Start sends the head's result to all hosts.
func (h *Host) Start(job []byte) { h.tellBelow(&proto.Down{Word: &proto.Down_Job{Job: job}}) }

// Report sends this host's part to the head, and returns the head's result. It blocks until all
// hosts are there.
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

// HasConnected reports, at the head, whether a host has connected to it, even if it is gone again.
func (h *Host) HasConnected(host int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.called[host]
}

// SurviveLosses makes the site continue from now on without hosts below h that are lost.
func SurviveLosses(h *Host) { h.with(func(m *membership.Member, _ time.Time) { m.SurviveLosses() }) }

// Finish reports to the tree that this host has finished its share of a job that goes well.
func (h *Host) Finish() { h.with(func(m *membership.Member, now time.Time) { m.Finish(now) }) }

// Finished returns a channel that is closed when this host and all below it have finished; at the
// head, all hosts.
func (h *Host) Finished() <-chan struct{} { return h.finished }

// Fail reports to the head why the job cannot continue.
func (h *Host) Fail(report []byte) {
	if h.up != nil {
		h.up.tell(&proto.Up{Word: &proto.Up_Fails{Fails: &proto.Message{Host: int32(h.cfg.Self), Data: report}}})
	}
}

// End sends, at the head, to all hosts that the job is over; report is empty if it went well. Hosts
// that leave or are lost after that are not reported.
func (h *Host) End(report []byte) {
	h.with(func(m *membership.Member, _ time.Time) {
		m.End()
		h.ended, h.verdict = true, report
		parent{h: h}.changed()
	})
	h.tellBelow(&proto.Down{Word: &proto.Down_Over{Over: report}})
}

// Signal sends a signal to the procs of all other hosts.
func (h *Host) Signal(number int) {
	h.tellBelow(&proto.Down{Word: &proto.Down_Signal{Signal: int32(number)}})
}

// Stop makes, at the head, all other hosts also end whatever outlives the job.
func (h *Host) Stop() { h.tellBelow(&proto.Down{Word: &proto.Down_Stop{Stop: &proto.Nothing{}}}) }

// KeepParents reports repeatedly, until leave is called, that procs here outlive the job, so that
// the hosts above stay for their output.
func (h *Host) KeepParents() (leave func()) {
	if h.up == nil {
		return func() {}
	}
	quit := make(chan struct{})
	h.begin(func() {
		for {
			h.up.tell(&proto.Up{Word: &proto.Up_Stays{Stays: &proto.Nothing{}}})
			select {
			case <-time.After(h.cfg.Beat / 2):
			case <-h.up.heard:
				return
			case <-quit:
				return
			}
		}
	})
	return func() { close(quit) }
}

// AwaitLateHosts waits, at the head after End, until the hosts that are missing have come and were
// sent the job's result, at most for limit.
func (h *Host) AwaitLateHosts(limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		h.mu.Lock()
		all := !slices.ContainsFunc(h.member.Missing(), func(host int) bool { return !h.informed[host] })
		changed := h.placed
		h.mu.Unlock()
		if all {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			return
		}
	}
}

// Close leaves the tree once the last output is written and the hosts below have left. It waits for
// that no longer than limit, which begins again whenever one of them reports that it stays, and
// after that no longer than lastWait for a write that cannot be interrupted, to an output that is
// not read.
func (h *Host) Close(limit time.Duration) {
	h.AwaitBelow(limit)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if h.up != nil {
		h.up.leave(ctx)
	}
	h.mu.Lock() // see begin
	h.cancel(net.ErrClosed)
	h.mu.Unlock()
	if d, ok := h.cfg.Stdin.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = d.SetReadDeadline(time.Unix(1, 0)) // ends pump, if the system can do that
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if h.ln != nil {
			h.auth.Close()
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

// AwaitBelow waits, when the job is over, until the hosts below have left, or none has reported for
// limit that it stays. Close does that first; if AwaitBelow is called before Close, this host still
// serves the hosts below.
func (h *Host) AwaitBelow(limit time.Duration) {
	h.with(func(m *membership.Member, _ time.Time) { m.End() })
	h.mu.Lock()
	if !h.awaited { // else the limit does not begin again
		h.awaited, h.stayed = true, time.Now()
	}
	h.mu.Unlock()
	for {
		h.mu.Lock()
		all := len(h.below) == len(h.gone)
		left := time.Until(h.stayed.Add(limit))
		h.mu.Unlock()
		if all || left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-h.left:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (h *Host) tellBelow(w *proto.Down) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range h.below {
		q.add(w)
	}
}
