package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/launch/engine"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/node"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/site/server"
)

// runManaged runs the node of the procs that a process manager has started on one machine. The
// first of those procs has started it.
func runManaged(std streams) int {
	_, stop := passedOn() // the procs get the signals themselves
	defer stop()
	socket, err := connOf(bootstrap.OrderFD)
	if err != nil {
		complain(std.err, fmt.Errorf("this command is for procs that srun, mpiexec.hydra or mpirun has started: %w", err))
		return statusUsage
	}
	n, err := bootstrap.Serve(socket)
	if err != nil {
		complain(std.err, err)
		return ending.StatusNode
	}
	status := managed(n, std)
	n.Close(status)
	return status
}

// managed runs a node. If the job fails it prints the reason before it tells the procs, because the
// process manager may kill this process as soon as they know.
func managed(n *bootstrap.Node, std streams) int {
	opt, err := managedOptions(n)
	if err != nil {
		_ = n.Refuse(err)
		return ending.StatusNode // the process that has started this one reports why, here and below
	}
	if err := n.Open(&managedNetwork{n, &opt}); err != nil {
		return ending.StatusNode
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	now := make(chan struct{})
	defer onSignals(nil, func(s syscall.Signal) { cancel(lifetime.Interrupt{Signal: s}) }, func(syscall.Signal) { close(now) })()
	addresses, joined, err := n.Gather(ctx, config.DefaultStart)
	if err != nil {
		return conclude(err, std)
	}
	for _, p := range joined {
		opt.Joined = append(opt.Joined, procs.Joined(p))
	}
	if err := place(n, addresses, &opt); err != nil {
		return conclude(err, std)
	}
	opt.Job.Survive = addresses[0].Survive
	said := false
	opt.Failing = func(f *ending.Failure) {
		if !f.Reported {
			complain(std.err, f)
			bootstrap.AwaitReader(std.err)
		}
		said = true
	}
	opt.EndNow, opt.Stdout, opt.Stderr = now, std.out, std.err
	err = node.Run(ctx, opt)
	var f *ending.Failure
	switch failed := errors.As(err, &f); {
	case failed && f.Lost > 0: // the others finished in order; the process manager reports how the lost ones ended
		if n.Self == 0 {
			complain(std.err, f)
		}
		return 0
	case failed && said:
		return f.Status
	}
	return conclude(err, std)
}

// managedNetwork is where the node of a process manager's procs listens for the others.
type managedNetwork struct {
	node *bootstrap.Node
	opt  *node.Options
}

func (m *managedNetwork) Address() (netip.Addr, error) {
	return ownAddress(os.Getenv, m.node.Machine, thisMachine{})
}

func (m *managedNetwork) Listen(at netip.Addr) (net.Listener, error) {
	return server.Listen(context.Background(), m.opt.Job, m.opt.Site, netip.AddrPortFrom(at, 0))
}

// managedOptions are those of a node whose settings are in its environment. The hosts are not known
// yet.
func managedOptions(n *bootstrap.Node) (opt node.Options, err error) {
	last := n.Blocks[len(n.Blocks)-1]
	job := config.Default(last.First+last.Procs, []string{"a program of the process manager's"}, known())
	var records config.Records
	if err = completeRecords(&records); err == nil {
		err = errors.Join(job.Record(records), job.CheckRecords(n.Self == 0))
	}
	site := job.Sites[0]
	if level := os.Getenv("IMPI_LOG_LEVEL"); slices.Contains(levels, level) {
		site.Log.Level = level
	} else if level != "" {
		err = errors.Join(err, fmt.Errorf("IMPI_LOG_LEVEL %q is no level: write one of %s", level, strings.Join(levels, ", ")))
	}
	return node.Options{Job: job, Site: site}, err
}

// place tells the node who it is, of all that addresses have.
func place(n *bootstrap.Node, addresses []bootstrap.NodeAddress, opt *node.Options) error {
	if len(addresses) == 1 {
		drawKey(&opt.Site.Auth)
		return nil
	}
	s := &opt.Site
	s.Hosts = nil
	for i, b := range n.Blocks {
		s.Hosts = append(s.Hosts, config.Host{Address: addresses[i].Address, Procs: b.Procs})
	}
	head := addresses[0]
	opt.Cluster = &client.ClusterConfig{Hosts: s.Hosts, Self: n.Self, Secret: []byte(head.Secret), Head: head.Head, Listener: n.Listener}
	s.Server.Address, _ = netip.ParseAddrPort(head.Server) // was checked before
	s.Server.Embedded, s.Server.Ours = n.Self == 0, true
	opt.Server = n.Server
	s.Auth = config.Auth{Keyed: true, Key: managedKey(head.Secret)}
	err := placeMetrics(n, addresses, s.Ports, &s.Metrics)
	opt.Job.Sites[0] = *s
	return err
}

// placeMetrics gives each node of one machine, which has several if ranks do not follow each other
// there, a port of its own: the next ones of the first node's, which are no ports of others.
func placeMetrics(n *bootstrap.Node, addresses []bootstrap.NodeAddress, others config.Ports, m *config.Metrics) error {
	before := 0
	for i := range n.Self {
		if addresses[i].Address == addresses[n.Self].Address {
			before++
		}
	}
	at := m.Listen
	if !at.IsValid() || at.Port() == 0 || before == 0 {
		return nil
	}
	if int(at.Port())+before > 65535 {
		return fmt.Errorf("%v %v: this machine has %d nodes before this one, which serve metrics at the next ports, and there is none left: write a lower port, or 0 for any", m.Pos, at, before)
	}
	m.Listen = netip.AddrPortFrom(at.Addr(), at.Port()+uint16(before))
	if others.Has(m.Listen.Port()) {
		return fmt.Errorf("%v %v: this machine has %d nodes before this one, which serve metrics at the next ports, and %d is one of %v %v, which something else may have taken by then: write another one, or 0 for any", m.Pos, at, before, m.Listen.Port(), others.Pos, others)
	}
	return nil
}

func managedKey(secret string) uint64 {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("impi: key of the job"))
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// networkVariable names those of a machine's addresses that the others reach: a list of networks
// such as 10.77.0.0/16 and of names of interfaces.
const networkVariable = "IMPI_NETWORK"

// calledBy are variables in which process managers put their name or address of the machine that a
// process is on.
var calledBy = []string{"MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "SLURMD_NODENAME"}

type addressBook interface {
	own() ([]config.Interface, error) // addresses of interfaces that are up, except loopback
	lookup(name string) []netip.Addr
	scheduler(node string) (address string)
}

// ownAddress chooses the address of this machine that the job's other machines reach: one that
// networkVariable names, or that the process manager uses for it in its environment or otherwise
// (called), or the only one there is. It does not guess.
func ownAddress(getenv func(string) string, called string, book addressBook) (netip.Addr, error) {
	own, err := book.own()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("this machine's addresses: %w", err)
	}
	var list []string
	for _, a := range own {
		list = append(list, fmt.Sprintf("%v (%s)", a.Address, a.Name))
	}
	if wanted := getenv(networkVariable); wanted != "" {
		for _, a := range own {
			if wants(wanted, a) {
				return a.Address, nil
			}
		}
		return netip.Addr{}, fmt.Errorf("%s=%s is none of this machine's networks or interfaces, which are %s", networkVariable, wanted, strings.Join(list, ", "))
	}
	isOwn := func(a netip.Addr) bool {
		return slices.ContainsFunc(own, func(o config.Interface) bool { return o.Address == a })
	}
	calls := []string{called}
	for _, variable := range calledBy {
		calls = append(calls, getenv(variable))
	}
	var names []string
	for _, name := range calls {
		if a, err := netip.ParseAddr(name); err == nil && (isOwn(a) || a.IsLoopback()) {
			return a, nil
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if a := onlyOne(own); a.IsValid() {
		return a, nil
	}
	for _, name := range names {
		for _, a := range book.lookup(name) {
			if isOwn(a) {
				return a, nil
			}
		}
	}
	if name := getenv("SLURMD_NODENAME"); name != "" {
		if a, err := netip.ParseAddr(book.scheduler(name)); err == nil {
			return a, nil
		}
	}
	if len(own) == 0 {
		return netip.Addr{}, errors.New("this machine has no address that others could reach: no interface but the loopback one is up")
	}
	return netip.Addr{}, fmt.Errorf("cannot tell which address of this machine the job's other machines reach; it has %s: set %s to a network such as 10.77.0.0/16, or to the name of an interface", strings.Join(list, ", "), networkVariable)
}

func onlyOne(own []config.Interface) netip.Addr {
	for _, is := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
		family := slices.DeleteFunc(slices.Clone(own), func(a config.Interface) bool { return !is(a.Address) })
		if len(family) == 1 {
			return family[0].Address
		}
		if len(family) > 1 {
			break
		}
	}
	return netip.Addr{}
}

func wants(list string, a config.Interface) bool {
	for _, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		p, err := netip.ParsePrefix(word)
		if word == a.Name || word == a.Address.String() || err == nil && p.Contains(a.Address) {
			return true
		}
	}
	return false
}

const lookupTime = 5 * time.Second

type thisMachine struct{}

func (thisMachine) own() (list []config.Interface, err error) {
	all, err := interfaces(net.FlagLoopback)
	for _, x := range all {
		if x.Address.IsGlobalUnicast() {
			list = append(list, config.Interface{Name: x.Name, Address: x.Address.Unmap()})
		}
	}
	return list, err
}

func (thisMachine) lookup(name string) (list []netip.Addr) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", name) // an unknown name has none
	for _, a := range found {
		list = append(list, a.Unmap())
	}
	return list
}

func (thisMachine) scheduler(node string) string {
	machines, _ := engine.Slurm{}.Allocation(context.Background())
	for _, m := range machines {
		if m.Name == node {
			return m.At()
		}
	}
	return ""
}
