package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster"
	"github.com/openimpi/impi/internal/hostlist"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/pluginlock"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/internal/site/server"
	"github.com/openimpi/impi/internal/version"
)

// ClusterConfig defines which host of its site a node runs, if other nodes run the other hosts.
// Host 0 is the head: its node is the site's client of the server.
type ClusterConfig struct {
	Hosts    []config.Host // all of the site's
	Self     int
	Secret   []byte       // shared by all nodes of the site, and no others
	Head     string       // "ip:port" where the head accepts connections of the other hosts
	Listener net.Listener // the head's, if it listens there already
	Started  bool         // an engine has started this node, by order of the head, which listens already

	// Ends, at the head, returns what the engine that has started the other hosts' nodes observes
	// of them. It is closed at the end. Nil if no engine has started them.
	Ends <-chan HostEnd

	// Fault, if not nil, is the reason why this host cannot be part of the site. The node sends it
	// to the others.
	Fault error
}

// HostEnd reports that the node of a host has ended or, if Host is -1, that the nodes could not be
// started.
type HostEnd struct {
	Host int // -1: no host
	Why  error
}

// maxSignals is how many signals wait until the procs are in MPI; further ones are lost.
const maxSignals = 1024

// Cluster connects a node with the other hosts of its site. A nil *Cluster is for a node that runs
// its whole site.
type Cluster struct {
	ClusterConfig
	Routes   *routes.Table
	End      *lifetime.Lifetime // gets failures of other hosts, and their loss
	Log      hclog.Logger
	Deadline time.Time            // until all hosts must be there
	Ready    <-chan struct{}      // closed when the procs run in MPI
	Signal   func(syscall.Signal) // for the procs here

	Stdin          *os.File // of the head's node; nil: none
	Stdout, Stderr *launch.Output
	Redirects      [2]*Redirect // where Stdout and Stderr write

	// Spawned is the name of the spawned world of which they are hosts. Its output goes through the
	// hosts of the site: Stdin, Stdout, Stderr and Redirects are nil. If Spawned is empty they are
	// the site's own hosts.
	Spawned string

	StopSpawned func() // ends all that was spawned at this host

	// ContinueWithout, if not nil, makes a job continue without hosts of the site that are lost for f,
	// once SurviveLosses was called. If it is nil, their loss ends the job.
	ContinueWithout func(hosts []int, f *ending.Failure)
	survives        atomic.Bool

	answer [topics]atomic.Pointer[func(context.Context, []byte) []byte] // see AnswerBy

	tree    atomic.Pointer[cluster.Host] // nil until it is connected; signals may come before
	over    chan struct{}                // closed when the head has reported that all went well
	signals chan syscall.Signal          // for the procs here, in the order in which they came
	closed  chan struct{}                // closed by Close
	once    sync.Once                    // of over

	id         *rendezvous.Identity // certificate among the hosts of the site; nil: none
	sought     atomic.Int64         // the host that Open waits for
	latecomers time.Duration        // see ReportEnd
	count      counts

	mu      sync.Mutex
	missing []int // hosts that the head waits for
}

// KeepOwnHost reduces the routes' site to the host that runs here.
func (o *Cluster) KeepOwnHost() {
	o.over, o.closed, o.signals = make(chan struct{}), make(chan struct{}), make(chan syscall.Signal, maxSignals)
	o.Routes.Site.Hosts = o.Hosts[o.Self : o.Self+1 : o.Self+1]
	o.Routes.HostsBefore = o.Self
	o.count.told = membership.NewCounts(len(o.Hosts), config.MaxProcs)
	o.count.whole = make(chan struct{})
	for _, h := range o.Hosts {
		o.count.procs = append(o.count.procs, h.Procs)
	}
	o.placeProcs()
}

// connected is this host's place among the others, or nil if it has none yet or there are no
// others.
func (o *Cluster) connected() *cluster.Host {
	if o == nil {
		return nil
	}
	return o.tree.Load()
}

// IsHead reports whether this node represents its site: it is the head, or there are no other
// hosts.
func (o *Cluster) IsHead() bool { return o == nil || o.Self == 0 }

func (o *Cluster) name(host int) string { return o.Hosts[host].String() }

// Open connects this host with the others: at the head it accepts connections, elsewhere it blocks
// until the head has accepted this host.
func (o *Cluster) Open(ctx context.Context) error {
	within, cancel := context.WithDeadline(ctx, o.Deadline)
	defer cancel()
	err := o.open(within)
	switch {
	case err == nil && o.Fault != nil: // at the head
		return o.fault(o.Fault)
	case errors.Is(err, cluster.ErrOver): // events have reported how
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.over:
		}
	case errors.Is(err, cluster.ErrUnfit):
		return ending.Misconfigured(err)
	}
	return err
}

func (o *Cluster) fault(why error) *ending.Failure {
	return ending.Misconfigured(fmt.Errorf("site %s: host %s: %w", o.Routes.Site.Name, o.name(o.Self), why))
}

// unfit logs why this host cannot be part of the site, and returns the report of it for the head.
func (o *Cluster) unfit(why error) []byte {
	o.Log.Error("this host cannot be part of the site; telling its head", "reason", why)
	return reportOf(o.fault(why), false, time.Now())
}

func (o *Cluster) open(ctx context.Context) error {
	if o.Ends != nil {
		go o.hearEngine()
	}
	id, err := server.Certificates(*o.Routes.Site)
	if err != nil && o.Fault == nil {
		o.Fault = err
	}
	c := cluster.Config{
		Tree: membership.Tree{Hosts: len(o.Hosts), Fan: membership.DefaultFan}, Self: o.Self, Name: o.name,
		Secret: o.Secret, Version: version.String(), File: o.digest(), Plugins: lockedPlugins(o),
		Listen: net.JoinHostPort(o.Hosts[o.Self].Address.String(), "0"), Listener: o.Listener, Ports: o.Routes.Site.Ports,
		Until:  o.until(),
		Stdout: o.writerTo(o.Stdout), Stderr: o.writerTo(o.Stderr), Owner: events{o}, Logger: o.Log.Named("hosts"),
	}
	if id != nil {
		c.Identity, o.id = id.WithOwn(), id
	}
	c.Beat, c.Silence = membership.SignsOfLife(routes.SilenceLimit(o.Routes.Job))
	o.AnswerBy(counting, o.answerCount)
	switch {
	case !o.IsHead():
		c.Head, c.HeadListens = o.Head, o.Started
		if o.Fault != nil {
			c.Fails = o.unfit(o.Fault)
		}
		c.Report = o.unfit
		c.Seeks = func(host int) { o.sought.Store(int64(host)) }
		defer report.LogWait(o.Log, o.Deadline, o.seeks)()
	case o.Stdin != nil:
		c.Stdin = o.Stdin
		fallthrough
	default:
		if c.Listener == nil {
			c.Listen = o.Head
		}
		c.HostAt = o.hostAt
	}
	if o.IsHead() && o.Fault != nil {
		o.End.Fail(o.fault(o.Fault)) // before others report consequences, such as that it shows no certificate
	}
	tree, err := cluster.Open(ctx, c)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: another job may have its head there; write head = \"ADDRESS:PORT\" with another port in the site block", err)
		}
		if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			return ending.TimedOut("site %s: %v passed: %v; %slet this host reach that address", o.Routes.Site.Name, o.Routes.Job.Limits.Start, err, o.remedy(", and "))
		}
		return err
	}
	o.tree.Store(tree)
	go o.passOn()
	if !o.IsHead() && o.Spawned == "" {
		for i, w := range []io.Writer{tree.Stdout(), tree.Stderr()} {
			o.Redirects[i].to.Store(&w)
		}
	}
	return nil
}

// Identity returns the host's certificate among those of its site, or nil if it has none.
func Identity(o *Cluster) *rendezvous.Identity {
	if o == nil {
		return nil
	}
	return o.id
}

// Renew makes the connections with the other hosts of the site again, with the present
// certificates.
func Renew(o *Cluster) {
	if o == nil {
		return
	}
	if tree := o.tree.Load(); tree != nil {
		tree.Renew()
	}
}

// remedy says what the operator can do about missing hosts; for those of a spawned world, which
// nobody starts by hand, it returns "".
func (o *Cluster) remedy(and string) string {
	if o.Spawned != "" {
		return ""
	}
	return "run impi-node there with the same file" + and
}

// writerTo makes writers for the output of other hosts. Output of a spawned world comes by the
// site's own hosts, so it is discarded here.
func (o *Cluster) writerTo(out *launch.Output) func() io.Writer {
	if o.Spawned != "" {
		return func() io.Writer { return io.Discard }
	}
	return func() io.Writer { return out.Stream(nil) }
}

// seeks says which host this one waits for before it has a place in the tree.
func (o *Cluster) seeks() string {
	if host := int(o.sought.Load()); host != 0 {
		return fmt.Sprintf("host %s, which connects this one to the head, as the site has more than %d hosts", o.name(host), membership.DefaultFan)
	}
	return "the head of the site at " + o.Head
}

// hearEngine handles what the engine reports of the other hosts. What hosts tell each other
// explains it: the engine is believed where nothing else is heard. A site that goes on without lost
// hosts recognizes them by their connections alone, which all of them have: a node that ends may
// have finished.
func (o *Cluster) hearEngine() {
	for e := range o.Ends {
		if e.Host < 0 {
			o.End.Fail(ending.NodeFailed(fmt.Errorf("site %s: %w", o.Routes.Site.Name, e.Why)))
			continue
		}
		f := o.lost(fmt.Errorf("host %s is lost: %w", o.name(e.Host), e.Why))
		f.Precedence = ending.Lost
		if !o.survives.Load() {
			o.End.Fail(f)
		}
	}
}

// SurviveLosses allows a site that can continue without lost hosts to do so from now on. o may be
// nil.
func SurviveLosses(o *Cluster) {
	if tree := o.connected(); tree != nil && o.ContinueWithout != nil {
		o.survives.Store(true)
		cluster.SurviveLosses(tree)
	}
}

// lockedPlugins are those of the lock file, of which the hosts of a site must have the same
// version. A spawned world uses the plugins that run.
func lockedPlugins(o *Cluster) (list []*proto.Plugin) {
	if o.Spawned != "" {
		return nil
	}
	for _, t := range o.Routes.Site.Transports {
		if t.Version != "" {
			list = append(list, &proto.Plugin{Transport: t.Name, Version: t.Version, Platform: pluginlock.Platform(), Sha256: t.SHA256})
		}
	}
	return list
}

// digest is a hash of everything that must be equal in all hosts' descriptions of the site.
func (o *Cluster) digest() []byte {
	site := o.Routes.Site
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %q %d\n%+v\n", site.Name, site.Client, site.Program.Command, site.Program.Stdin, site.Protocol)
	if n := site.Native; n != nil {
		fmt.Fprintf(h, "native %q\n", n.Launch)
	}
	for _, p := range site.Parts {
		fmt.Fprintf(h, "%d %q\n", p.Procs, p.Program.Command)
	}
	for _, r := range site.Routes { // in any order
		r.Pos, r.Closed = config.Pos{}, false // closed follows from certificates
		fmt.Fprintf(h, "%+v\n", r)
	}
	for _, t := range site.Transports { // their settings may be a machine's own, as paths are
		fmt.Fprintf(h, "%q\n", t.Name)
	}
	l := o.Routes.Job.Limits // except start, which each node counts from its own start
	fmt.Fprintln(h, l.Stop, l.Resume, l.Silence)
	for _, x := range o.Hosts { // by name if they have one, as machines may have different addresses of it
		n := x.Procs
		if x.Auto {
			n = 0 // its own machine determines the number
		}
		fmt.Fprintf(h, "%v %d\n", x, n)
	}
	return h.Sum(nil)
}

// Failed converts the error with which the hosts of the site did not connect into a failure.
func (o *Cluster) Failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, membership.ErrMissing):
		return ending.TimedOut("site %s: %v passed and hosts of %s are missing: %s; %s",
			o.Routes.Site.Name, o.Routes.Job.Limits.Start, cmp.Or(o.Spawned, "the site"), o.names(o.waits()), whatOfMissing(o))
	case errors.Is(err, cluster.ErrOver): // events has received why, or does so now
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return o.lost(err)
}

// until is how long the head waits for the other hosts.
func (o *Cluster) until() time.Time {
	start := o.Routes.Job.Limits.Start
	return o.Deadline.Add(membership.Patience(start) - start)
}

func (o *Cluster) lost(err error) *ending.Failure {
	return &ending.Failure{Text: fmt.Sprintf("site %s: %v", o.Routes.Site.Name, err), Status: ending.StatusNode, Precedence: ending.Died, Cause: err}
}

func whatOfMissing(o *Cluster) string {
	if o.Spawned != "" {
		return "let them reach host " + o.name(0)
	}
	var silent []int
	for _, host := range o.waits() {
		if !o.tree.Load().HasConnected(host) {
			silent = append(silent, host)
		}
	}
	switch {
	case len(silent) == 0:
		return "they have reached the head, but not the host between them and the head; " + cluster.Remedy
	case o.Ends != nil:
		return fmt.Sprintf("their impi-node was started there, but has not connected to %s", o.Head)
	}
	return fmt.Sprintf("nothing came to %s from %s: %s, and let it reach that port", o.Head, o.names(silent), o.remedy(""))
}

func (o *Cluster) waits() []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.missing
}

func (o *Cluster) waitsFor() string {
	if w := o.waits(); len(w) > 0 {
		return "hosts of the site: " + o.names(w)
	}
	return "the procs of the site's other hosts"
}

func (o *Cluster) names(hosts []int) string {
	var list []string
	for _, h := range hosts {
		list = append(list, o.name(h))
	}
	return hostlist.Compress(list)
}

// Address returns the address of a host of the site, as in the job file.
func (o *Cluster) Address(host int) string { return o.name(host) }

// hostAt finds the host that has an address. An engine gives all hosts the same secret, so a host
// with another secret is not of the site.
func (o *Cluster) hostAt(a netip.Addr) (host int, ok bool) {
	host = slices.IndexFunc(o.Hosts, func(h config.Host) bool { return h.Address == a })
	return host, host > 0 && o.Ends == nil
}
