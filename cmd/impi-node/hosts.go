package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch/engine"
	"github.com/openimpi/impi/internal/node/member"
)

// hostVerb is how the head of a site starts impi-node for another host.
const hostVerb = "host"

// hostOrder is what the head tells the node of another host: all that this needs to know, in the
// line that an engine writes to its standard input, since nobody else may see the keys.
type hostOrder struct {
	File    string        `json:"file"` // the job file's absolute path at the head; empty: there is none
	Text    []byte        `json:"text"` // and what stands in it
	Environ []string      `json:"environ"`
	Site    string        `json:"site"`
	Hosts   []config.Host `json:"hosts"` // of the site; which one it is stands in engine.IndexVariable
	Flags   []string      `json:"flags"` // of the head's command line

	Addresses map[string]netip.Addr `json:"addresses"` // of host names in the file

	Server config.Server `json:"server"`
	Auth   config.Auth   `json:"auth"`
	Names  config.Auth   `json:"names"`
	Head   string        `json:"head"`
	Secret []byte        `json:"secret"`
}

// launching starts the nodes of a site's other hosts by an engine, and hears of their ends.
type launching struct {
	listener net.Listener // the head's
	cancel   context.CancelFunc
	over     chan struct{} // closed when all that was started has ended
	left     chan struct{} // closed by stop: nodes have a moment to end by themselves
	limit    time.Duration // that moment
}

// launchHosts starts the nodes of the other hosts of p's site, and has p know how they meet. It
// does not wait for them.
func launchHosts(o *options, job *config.Job, p *nodeSpec, names map[string]netip.Addr) (*launching, error) {
	command, err := hostCommand(o, job, p, names)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.Limits.Start)
	l := &launching{
		listener: p.others.Listener, cancel: cancel, limit: job.Limits.Stop,
		over: make(chan struct{}), left: make(chan struct{}),
	}
	ends := make(chan member.HostEnd, len(p.site.Hosts))
	p.others.Ends = ends
	words := make([]lastWords, len(p.site.Hosts)-1)
	command.Output = func(machine int) (stdout, stderr io.Writer) { return nil, &words[machine] }
	with, others := p.site.Launch, p.site.Hosts[1:]
	go func() {
		defer close(l.over)
		defer close(ends)
		e, machines, err := engineOf(ctx, with, others)
		var started *engine.Started
		if err == nil {
			started, err = e.Start(ctx, machines, command)
		}
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("limits { start = %q } is over: %w", job.Limits.Start, err)
			}
			ends <- member.HostEnd{Host: -1, Why: err}
			return
		}
		l.hear(started, ends, words)
	}()
	return l, nil
}

// hear passes on how the nodes end, and ends them if they do not in time.
func (l *launching) hear(started *engine.Started, ends chan<- member.HostEnd, words []lastWords) {
	left := l.left
	var late <-chan time.Time
	for {
		select {
		case e, more := <-started.Ends():
			if !more {
				return
			}
			ends <- member.HostEnd{Host: e.Machine + 1, Why: words[e.Machine].explain(e)}
		case <-left:
			left, late = nil, time.After(l.limit)
		case <-late:
			_ = started.Stop() // what it cannot reach ends with its connection
			late = nil
		}
	}
}

// stop returns when no node of another host is left.
func (l *launching) stop() {
	close(l.left)
	l.cancel()
	<-l.over
	_ = l.listener.Close() // if the node has not come so far
}

// hostCommand is what runs on the other hosts.
func hostCommand(o *options, job *config.Job, p *nodeSpec, names map[string]netip.Addr) (c engine.Command, err error) {
	program := p.site.Launch.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return c, err
		}
	}
	at := p.site.Head
	if !at.IsValid() {
		at = netip.AddrPortFrom(p.site.Hosts[0].Address, 0)
	}
	if p.others.Listener, err = net.Listen("tcp", at.String()); err != nil {
		return c, fmt.Errorf("site %s: the head cannot take connections of the other hosts: %w", p.site.Name, err)
	}
	p.others.Head = p.others.Listener.Addr().String()
	p.others.Secret = []byte(rand.Text())
	order := hostOrder{
		Environ: os.Environ(), Site: p.site.Name, Hosts: p.site.Hosts, Flags: o.args(*p), Server: p.site.Server, Auth: p.site.Auth, Names: p.site.Names.Auth,
		Head: p.others.Head, Secret: p.others.Secret, Addresses: names,
	}
	if job.File != "" {
		if order.File, err = filepath.Abs(job.File); err == nil {
			order.Text, err = os.ReadFile(job.File)
		}
	}
	dir := ""
	if err == nil {
		dir, err = folder(o)
	}
	var secret []byte
	if err == nil {
		secret, err = json.Marshal(order)
	}
	if err != nil {
		return c, errors.Join(err, p.others.Listener.Close())
	}
	return engine.Command{Args: []string{program, hostVerb}, Dir: dir, Secret: string(secret), Grace: job.Limits.Stop}, nil
}

// engineOf gives the engine of a launch block, and what it calls some hosts.
func engineOf(ctx context.Context, l *config.Launch, hosts []config.Host) (e engine.Engine, called []engine.Machine, err error) {
	if e = schedulerOf(l); e == nil {
		for _, h := range hosts {
			called = append(called, engine.Machine{Name: h.String(), User: l.Users[h.String()]})
		}
		if l.Engine == config.LaunchExec {
			return engine.Exec{Command: l.Command}, called, nil
		}
		return engine.SSH{Options: l.Options}, called, nil
	}
	machines, err := e.Allocation(ctx)
	if err != nil {
		return nil, nil, err
	}
	at, err := addressesOf(ctx, machines)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range hosts {
		i := slices.IndexFunc(machines, func(m engine.Machine) bool { return h.Name != "" && (m.Name == h.Name || m.At() == h.Name) })
		if i < 0 {
			i = slices.Index(at, h.Address)
		}
		if i < 0 {
			return nil, nil, fmt.Errorf("host %v is not one of the machines that the job has got from the scheduler: %s", h.Address, at)
		}
		called = append(called, machines[i])
	}
	return e, called, nil
}

// addressesOf gives the address of each machine.
func addressesOf(ctx context.Context, machines []engine.Machine) (at []netip.Addr, err error) {
	for _, m := range machines {
		a, err := netip.ParseAddr(m.At())
		if err != nil {
			found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", m.At())
			if err != nil {
				return nil, fmt.Errorf("the address of %s, a machine of the job, is not known: %w", m.Name, err)
			}
			a = found[0]
		}
		at = append(at, a.Unmap())
	}
	return at, nil
}

// lastWords are what a node has written on its standard error before it was connected with the
// head, or after; its end.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

const maxLastWords = 2 << 10

// Write keeps the last bytes.
func (w *lastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	w.text = w.text[max(0, len(w.text)-maxLastWords):]
	return len(b), nil
}

// explain says why a node is not there any more.
func (w *lastWords) explain(e engine.End) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := strings.TrimSpace(string(w.text))
	switch {
	case e.Lost != "":
		return errors.New(e.Lost)
	case said == "":
		return fmt.Errorf("its impi-node has ended with status %d", e.Status)
	}
	return fmt.Errorf("its impi-node has ended with status %d: %s", e.Status, strings.TrimPrefix(said, "impi-node: "))
}

// runHost is the subcommand: it runs one host of a site as its head has told it.
func runHost(std streams) int {
	p, job, o, err := takeOrder(std)
	if err != nil {
		complain(std.err, err)
		return statusUsage
	}
	if job == nil {
		return statusUsage // it was said why
	}
	return conclude(runNode(o, job, p, order{}, nil, streams{out: std.out, err: std.err}), std)
}

// ofItsMachine are variables whose values mean something on one machine only.
var ofItsMachine = []string{"TMPDIR", "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "HOSTNAME"}

// takeEnvironment has the procs find the variables of the head that this machine does not set.
func takeEnvironment(environ []string) {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if _, here := os.LookupEnv(name); !here && !slices.Contains(ofItsMachine, name) {
			_ = os.Setenv(name, value) // they do without a name that cannot be set
		}
	}
}

// takeOrder reads what the head has written. The job is nil if its file has faults, which are shown.
func takeOrder(std streams) (p nodeSpec, job *config.Job, o *options, err error) {
	line, err := bufio.NewReader(std.in).ReadBytes('\n')
	var x hostOrder
	if err == nil {
		err = json.Unmarshal(line, &x)
	}
	if err != nil {
		return p, nil, o, fmt.Errorf("no order of a head is on standard input, as there is when impi-node of another host starts this: %w", err)
	}
	var self int
	if n, err := fmt.Sscan(os.Getenv(engine.IndexVariable), &self); n != 1 || self < 0 || self+1 >= len(x.Hosts) {
		return p, nil, o, fmt.Errorf("%s=%q is no host of site %s: %w", engine.IndexVariable, os.Getenv(engine.IndexVariable), x.Site, err)
	}
	self++
	takeEnvironment(x.Environ)
	machine, err := local()
	if err != nil {
		return p, nil, o, err
	}
	isLocal := func(a netip.Addr) bool { return a == x.Hosts[self].Address || machine(a) }
	if o, err = parseFlags(x.Flags); err != nil {
		return p, nil, o, err
	}
	job, found := x.job(o, isLocal)
	if found.HasErrors() {
		show(std.err, found)
		return p, nil, o, nil
	}
	p.site, _ = job.Site(x.Site)
	p.host = self
	p.site.Server, p.site.Auth, p.site.Names.Auth = x.Server, x.Auth, x.Names
	p.site.Server.Embedded = false
	p.others = member.Cluster{Secret: x.Secret, Head: x.Head}
	o.apply(&p.site)
	return p, job, o, nil
}

// job makes the job as it is at the head.
func (x *hostOrder) job(o *options, isLocal func(netip.Addr) bool) (*config.Job, config.Diagnostics) {
	if x.File == "" {
		job, found := withoutFile(o)
		if job != nil {
			job.Sites[0].Hosts = x.Hosts
		}
		return job, found
	}
	opt := loadOptions()
	opt.Local, opt.Environ, opt.KeysKnown, opt.Addresses = isLocal, x.Environ, true, x.Addresses
	opt.Tasks = tasksOf(x.Environ) // a step of srun has others
	opt.Allocation = func(site string, _ config.Launch) []config.Host {
		if site != x.Site {
			return nil // as at the head
		}
		return x.Hosts
	}
	job, found := config.LoadText(x.File, x.Text, opt)
	return finishLoad(job, found, isLocal, false)
}
