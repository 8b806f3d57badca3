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
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch/engine"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/site/client"
)

// hostOrder is the head's order to the node of another host: everything that the node needs to
// know. An engine writes it to the node's standard input, as no other process may see the keys. A
// host that starts others passes it on.
type hostOrder struct {
	File    string        `json:"file"` // absolute path of the job file at the head; empty: none
	Text    []byte        `json:"text"` // and its contents
	Environ []string      `json:"environ"`
	Site    string        `json:"site"`
	Hosts   []config.Host `json:"hosts"` // of the site; engine.IndexVariable: index of the one to run
	Flags   []string      `json:"flags"` // the head's command-line flags

	Addresses map[string]netip.Addr `json:"addresses"` // of host names in the file

	Server config.Server `json:"server"`
	Auth   config.Auth   `json:"auth"`
	Names  config.Auth   `json:"names"`
	Head   string        `json:"head"`
	Secret []byte        `json:"secret"`

	Program string `json:"program"` // path of impi-node
	Dir     string `json:"dir"`     // working folder; empty: any
	Share   share  `json:"share"`   // the hosts that the receiver starts, itself included
	Fanout  int    `json:"fanout"`  // maximum number of hosts that a node starts directly
}

// headOrder makes the order for the other hosts, and sets in p how it finds them.
func headOrder(o *options, job *config.Job, p *nodeSpec, names map[string]netip.Addr) (x *hostOrder, err error) {
	at := p.site.Head
	if !at.IsValid() {
		at = netip.AddrPortFrom(p.site.Hosts[0].Address, 0)
	}
	if p.clusterConfig.Listener, err = listen.TCP(context.Background(), net.ListenConfig{}, at, p.site.Ports); err != nil {
		return nil, fmt.Errorf("site %s: the head cannot accept connections of the other hosts: %w", p.site.Name, err)
	}
	p.clusterConfig.Head = p.clusterConfig.Listener.Addr().String()
	p.clusterConfig.Secret = []byte(rand.Text())
	x = &hostOrder{
		Environ: os.Environ(), Site: p.site.Name, Hosts: p.site.Hosts, Flags: o.args(*p), Server: p.site.Server, Auth: p.site.Auth, Names: p.site.Names.Auth,
		Head: p.clusterConfig.Head, Secret: p.clusterConfig.Secret, Addresses: names, Program: p.site.Launch.Program, Share: share{1, len(p.site.Hosts)}, Fanout: fanout(p.site),
	}
	if job.File != "" {
		if x.File, err = filepath.Abs(job.File); err == nil {
			x.Text, err = config.ReadText(job.File)
		}
	}
	if err == nil && x.Program == "" {
		x.Program, err = os.Executable()
	}
	if err == nil {
		x.Dir, err = folder(o)
	}
	if err != nil {
		return nil, errors.Join(err, p.clusterConfig.Listener.Close())
	}
	return x, nil
}

func (x *hostOrder) command(grace time.Duration) (engine.Command, error) {
	secret, err := json.Marshal(x)
	return engine.Command{Args: []string{x.Program, hostVerb}, Dir: x.Dir, Secret: string(secret), Grace: grace}, err
}

// share is a range of a site's hosts, in their order: from First up to, but not including, End.
type share struct {
	First int `json:"first"`
	End   int `json:"end"`
}

// divide divides a share into at most most parts whose sizes differ by one at most. The sender
// starts the first host of each part, and that host starts the others of its part.
func (s share) divide(most int) (parts []share) {
	n := s.End - s.First
	k := min(n, most)
	for i := range k {
		parts = append(parts, share{s.First + i*n/k, s.First + (i+1)*n/k})
	}
	return parts
}

// fanout returns how many hosts of a site a single one starts. With ssh the started hosts start
// others: where keys are on all machines the head does not need a connection to each.
func fanout(s config.Site) int {
	if s.Launch.Engine == config.LaunchSSH || s.Launch.Engine == config.LaunchPBS {
		return s.Launch.Fanout
	}
	return len(s.Hosts)
}

// ofItsMachine lists the variables whose values only make sense on one machine.
var ofItsMachine = []string{"TMPDIR", "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "HOSTNAME"}

// takeEnvironment sets those of the head's variables that this machine does not set, for the procs.
func takeEnvironment(environ []string) {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if _, here := os.LookupEnv(name); !here && !slices.Contains(ofItsMachine, name) {
			_ = os.Setenv(name, value) // best effort: procs run without a variable that cannot be set
		}
	}
}

// takeOrder reads the head's order. The job is nil if its file has faults, which are printed.
func takeOrder(std streams) (p nodeSpec, job *config.Job, o *options, err error) {
	in := bufio.NewReader(std.in)
	line, err := in.ReadBytes('\n')
	var x hostOrder
	if err == nil {
		err = json.Unmarshal(line, &x)
	}
	if err != nil {
		return p, nil, o, fmt.Errorf("standard input has no order from a head; only impi-node on another host starts this command: %w", err)
	}
	mine, err := x.own(os.Getenv(engine.IndexVariable))
	if err != nil {
		return p, nil, o, err
	}
	self := mine.First
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
	if found.HasErrors() && !found.OfMachine() {
		show(std.err, found)
		return p, nil, o, nil
	}
	p.fault = found.Err()
	p.site, _ = job.Site(x.Site)
	p.host = self
	p.source = o.source(job, x.Site, nil)
	if p.source != nil {
		p.source.Given = true
		p.source.Read = func(_ context.Context, text string) (*config.Job, config.Diagnostics) {
			again := x
			again.Text = []byte(text)
			return again.job(o, isLocal)
		}
	}
	p.site.Server, p.site.Auth, p.site.Names.Auth = x.Server, x.Auth, x.Names
	p.site.Server.Embedded = false
	p.clusterConfig = client.ClusterConfig{Secret: x.Secret, Head: x.Head, Started: true}
	o.apply(&p.site)
	p.starter = make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(p.starter)
	}()
	if x.Share = (share{self + 1, mine.End}); x.Share.First < x.Share.End {
		p.launches, p.order = true, &x
	}
	return p, job, o, nil
}

// own returns the part of the order's share that belongs to this host, which is the first in it.
func (x *hostOrder) own(index string) (share, error) {
	i, err := strconv.Atoi(index)
	if x.Share == (share{}) {
		return share{}, fmt.Errorf("the head of site %s does not say which hosts this one starts: install the same release on both", x.Site)
	}
	if err != nil {
		return share{}, fmt.Errorf("%s=%q is no number: %w", engine.IndexVariable, index, err)
	}
	if x.Share.First < 1 || x.Share.First >= x.Share.End || x.Share.End > len(x.Hosts) || x.Fanout < 1 {
		return share{}, fmt.Errorf("%s=%q is no host of site %s, of which the hosts %+v are started", engine.IndexVariable, index, x.Site, x.Share)
	}
	parts := x.Share.divide(x.Fanout)
	if i < 0 || i >= len(parts) {
		return share{}, fmt.Errorf("%s=%q is no host of site %s, of which %d are started at once", engine.IndexVariable, index, x.Site, len(parts))
	}
	return parts[i], nil
}

// tasks returns how many procs a scheduler has given a host: what the head knows, as only the head
// has PBS's file of machines, or what this machine's scheduler says about the job, not about this
// step of srun.
func (x *hostOrder) tasks() func(config.Host) (int, error) {
	ask := tasksOf(x.Environ)
	return func(h config.Host) (int, error) {
		for _, known := range x.Hosts {
			same := known.Name == h.Name && (h.Name != "" || known.Address == h.Address)
			if same && known.Auto && known.Procs > 0 {
				return known.Procs, nil
			}
		}
		return ask(h)
	}
}

// job returns the same job as at the head.
func (x *hostOrder) job(o *options, isLocal func(netip.Addr) bool) (*config.Job, config.Diagnostics) {
	if x.File == "" {
		job, found := withoutFile(o)
		if job != nil {
			job.Sites[0].Hosts = x.Hosts
			if err := job.CheckRecords(false); err != nil {
				found = append(found, config.Diagnostic{Severity: config.Error, Problem: err.Error(), Machine: true})
			}
		}
		return job, found
	}
	opt := loadOptions()
	opt.Local, opt.Environ, opt.KeysKnown, opt.Addresses = isLocal, x.Environ, true, x.Addresses
	opt.Tasks = x.tasks()
	opt.Allocation = func(site string, _ config.Launch) []config.Host {
		if site != x.Site {
			return nil // the head has looked up the other sites
		}
		return x.Hosts
	}
	job, found := config.LoadText(x.File, x.Text, opt)
	return finishLoad(context.Background(), job, found, isLocal, false)
}
