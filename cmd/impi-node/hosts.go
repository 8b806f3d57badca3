package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch/engine"
	"github.com/openimpi/impi/internal/site/client"
)

// hostVerb is the command with which the head of a site starts impi-node for another host.
const hostVerb = "host"

type launching struct {
	parts    []share      // shares of the hosts; the first host of each is started here
	listener net.Listener // the head's, or nil
	cancel   context.CancelFunc
	over     chan struct{} // closed when all started processes have ended
	left     chan struct{} // closed by stop at the head: nodes then have limit to exit by themselves
	head     bool
	limit    time.Duration // see left
}

// launchHosts starts the nodes of other hosts of p's site, without waiting for them: at the head
// those of all hosts, elsewhere those of p.order. They start the other hosts of their parts. It
// sets in p how all of them find each other.
func launchHosts(o *options, job *config.Job, p *nodeSpec, names map[string]netip.Addr) (*launching, error) {
	with, x := *p.site.Launch, p.order
	if x == nil {
		var err error
		if x, err = headOrder(o, job, p, names); err != nil {
			return nil, err
		}
	} else if with.Engine == config.LaunchPBS {
		with.Engine = config.LaunchSSH // only the head has PBS's file of machines
	}
	command, err := x.command(job.Limits.Stop)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), job.Limits.Start)
	l := &launching{
		listener: p.clusterConfig.Listener, cancel: cancel, limit: job.Limits.Stop,
		over: make(chan struct{}), left: make(chan struct{}), head: p.order == nil, parts: x.Share.divide(x.Fanout),
	}
	ends := make(chan client.HostEnd, len(p.site.Hosts))
	p.clusterConfig.Ends = ends
	words := make([]stderrTail, len(l.parts))
	command.Output = func(machine int) (stdout, stderr io.Writer) { return nil, &words[machine] }
	said := false
	command.Failing = func(err error) {
		said = true
		ends <- client.HostEnd{Host: -1, Why: err}
	}
	var first []config.Host
	for _, part := range l.parts {
		first = append(first, p.site.Hosts[part.First])
	}
	go func() {
		defer close(l.over)
		defer close(ends)
		e, machines, err := engineOf(ctx, &with, first)
		var started *engine.Started
		if err == nil {
			started, err = e.Start(ctx, machines, command)
		}
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("limits { start = %q } has passed: %w", job.Limits.Start, err)
			}
			if !said {
				ends <- client.HostEnd{Host: -1, Why: err}
			}
			return
		}
		l.hear(started, ends, words)
	}()
	return l, nil
}

// hear passes on how the nodes end, and ends them if they do not end in time.
func (l *launching) hear(started *engine.Started, ends chan<- client.HostEnd, words []stderrTail) {
	left := l.left
	var late <-chan time.Time
	for {
		select {
		case e, more := <-started.Ends():
			if !more {
				return
			}
			ends <- client.HostEnd{Host: l.parts[e.Machine].First, Why: words[e.Machine].explain(e)}
		case <-left:
			left, late = nil, time.After(l.limit)
		case <-late:
			_ = started.Stop() // nodes that Stop does not reach exit when their connection ends
			late = nil
		}
	}
}

// stop returns when all nodes that were started here have ended. Only the head makes them end:
// elsewhere they may stay for reasons that this host does not know, such as procs that were spawned
// there. If the head ends this host, they lose the connection by which they were started.
func (l *launching) stop() {
	if l.head {
		close(l.left)
	}
	l.cancel()
	<-l.over
	if l.listener != nil {
		_ = l.listener.Close() // in case the node has not taken it
	}
}

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
	if slurm, is := e.(engine.Slurm); is {
		var names []string
		for _, h := range hosts {
			names = append(names, h.Name)
		}
		if called = slurm.Named(names); called != nil {
			return e, called, nil
		}
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
			return nil, nil, fmt.Errorf("host %v is not one of the machines that the scheduler gave to the job: %s", h.Address, at)
		}
		called = append(called, machines[i])
	}
	return e, called, nil
}

// addressesOf returns the address of each machine. Names are looked up like those of a job file,
// but no longer than those of a command line, since the scheduler has started the machines already.
func addressesOf(ctx context.Context, machines []engine.Machine) (at []netip.Addr, err error) {
	isLocal, err := local()
	if err != nil {
		return nil, err
	}
	var s config.Site
	for _, m := range machines {
		a, err := netip.ParseAddr(m.At())
		h := config.Host{Address: a.Unmap()}
		if err != nil {
			h.Name = m.At()
		}
		s.Hosts = append(s.Hosts, h)
	}
	ctx, cancel := context.WithTimeout(ctx, typedNames)
	defer cancel()
	l := &lookup{resolver: systemResolver, isLocal: isLocal, pause: wait}
	addresses, missing := l.run(ctx, []config.Site{s}, false)
	if len(missing) > 0 {
		return nil, fmt.Errorf("the address of %s, a machine of the job, is not known: %w", missing[0].Name, l.faults[missing[0].Name])
	}
	for _, h := range s.Hosts {
		if h.Name != "" {
			h.Address = addresses[h.Name]
		}
		at = append(at, h.Address)
	}
	return at, nil
}

// stderrTail keeps the end of what a node has written on its standard error while it was not
// connected with the head.
type stderrTail struct {
	mu   sync.Mutex
	text []byte
}

const maxStderrTail = 2 << 10

// Write keeps the last bytes.
func (w *stderrTail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	w.text = w.text[max(0, len(w.text)-maxStderrTail):]
	return len(b), nil
}

func (w *stderrTail) explain(e engine.End) error {
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

func runHost(std streams) int {
	p, job, o, err := takeOrder(std)
	if err != nil {
		complain(std.err, err)
		return statusUsage
	}
	if job == nil {
		return statusUsage // the reason was printed
	}
	return conclude(runNode(o, job, p, order{}, nil, streams{out: std.out, err: std.err}), std)
}
