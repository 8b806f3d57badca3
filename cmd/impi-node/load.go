package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/doctor"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/operator/reload"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func local() (func(netip.Addr) bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("this machine's addresses: %w", err)
	}
	ours := make(map[netip.Addr]bool)
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			ours[p.Addr().Unmap()] = true
		}
	}
	return func(a netip.Addr) bool {
		a = a.Unmap()
		return a.IsLoopback() || ours[a.WithZone("")]
	}, nil
}

func checkPort(a netip.AddrPort) error {
	l, err := listen.At(context.Background(), net.ListenConfig{}, a)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return err
	}
	return l.Close()
}

// load reads and checks a job file, including the transports' settings. ports selects the listeners
// load reads and checks a job file, including the transports' settings. ports selects the listeners
// whose ports are checked; nil means none. With try, one that a node of the same job has is no
// fault, and plugins are started and asked for their settings, until ctx ends. addresses are those
// of host names. site is the only site to run, or "".
func load(ctx context.Context, path string, isLocal func(netip.Addr) bool, addresses map[string]netip.Addr, ports func(netip.AddrPort) bool, site string, try bool) (*config.Job, config.Diagnostics) {
	opt := loadOptions()
	opt.Local, opt.Addresses, opt.Allocation = isLocal, addresses, allocated(site)
	if ports != nil {
		opt.CheckPort = func(a netip.AddrPort) error {
			if !ports(a) {
				return nil
			}
			err := checkPort(a)
			if try && errors.Is(err, syscall.EADDRINUSE) {
				switch who, runs := doctor.PortHolder((&config.Job{File: path}).Name(), a.Port()); {
				case runs:
					return config.Runs{Who: who}
				case who != "":
					return fmt.Errorf("%w by %s", err, who)
				}
			}
			return err
		}
	}
	job, found := config.Load(path, opt)
	return finishLoad(ctx, job, found, isLocal, try)
}

// source says how a node reads its job file again, with the addresses of host names that it has
// found. It is nil if there is none.
func (o *options) source(job *config.Job, name string, addresses map[string]netip.Addr) *reload.Source {
	if job.File == "" {
		return nil
	}
	site, _ := job.Site(name)
	return &reload.Source{Job: job, Site: site, Level: o.logLevel, Read: func(ctx context.Context, _ string) (*config.Job, config.Diagnostics) {
		isLocal, err := local()
		if err != nil {
			return nil, fault(err)
		}
		return load(ctx, job.File, isLocal, addresses, nil, site.Name, true)
	}}
}

func finishLoad(ctx context.Context, job *config.Job, found config.Diagnostics, isLocal func(netip.Addr) bool, try bool) (*config.Job, config.Diagnostics) {
	if job == nil {
		return nil, found
	}
	c := &checker{job: job, local: job.LocalSites(isLocal), found: found, links: make(map[offered]transports.Capabilities)}
	c.transports(ctx, try)
	c.sharedPorts()
	c.pins()
	c.secrecy()
	c.certificates()
	if try {
		c.measured() // at start a faulty file is ignored, with a warning by the node
	}
	return job, inOrder(dedupe(c.found))
}

func inOrder(ds config.Diagnostics) config.Diagnostics {
	slices.SortStableFunc(ds, func(a, b config.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return ds
}

func allPorts(netip.AddrPort) bool { return true }

// portsOf returns a function that selects the ports of one site, or of one host of it, since the
// nodes of others may be running on this machine. A file with faults has none.
func portsOf(path, site, host string, isLocal func(netip.Addr) bool, addresses map[string]netip.Addr) func(netip.AddrPort) bool {
	ours := make(map[netip.AddrPort]bool)
	opt := loadOptions()
	opt.Local, opt.Addresses, opt.Allocation = isLocal, addresses, allocated(site)
	if job, _ := config.Load(path, opt); job != nil {
		s, _ := job.Site(site)
		only := hostCalled(host, s.Hosts) // index of the host, or -1
		ours[s.Server.Address] = s.Server.Embedded && only < 1
		for i, h := range s.Hosts {
			if only < 0 || i == only {
				ours[netip.AddrPortFrom(h.Address, h.Port)] = true
			}
		}
	}
	return func(a netip.AddrPort) bool { return ours[a] }
}

func namesFiles(schema []transports.Setting, given map[string]any) bool {
	return slices.ContainsFunc(schema, func(s transports.Setting) bool {
		path, _ := given[s.Name].(string)
		return s.Type == transports.TypePath && path != ""
	})
}

func settingErrors(err error) (list []*transports.SettingError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, settingErrors(e)...)
		}
		return list
	}
	if e, ok := errors.AsType[*transports.SettingError](err); ok {
		list = append(list, e)
	}
	return list
}

// dedupe removes repeated faults of blocks that several sites share.
func dedupe(ds config.Diagnostics) (kept config.Diagnostics) {
	seen := make(map[config.Diagnostic]bool)
	for _, d := range ds {
		if !seen[d] {
			seen[d] = true
			kept = append(kept, d)
		}
	}
	return kept
}

func show(f *os.File, ds config.Diagnostics) {
	_ = ds.WriteText(f, isTerminal(f)) // an error cannot be reported anywhere
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

//go:embed help/validate.txt
var validateHelp string

func validateCommand(std streams) *cmdline.Command {
	c := &cmdline.Command{Name: "validate", Help: validateHelp, Args: cmdline.File, Flags: cmdline.NewFlags()}
	asJSON := c.Flags.Bool("json", false, "")
	c.Check = cmdline.ExactArgs(1, "one job file")
	c.Run = func(args []string, _, _ io.Writer) (int, error) { return validate(args[0], *asJSON, std) }
	return c
}

func validate(file string, asJSON bool, std streams) (int, error) {
	isLocal, err := local()
	if err != nil {
		return statusUsage, err
	}
	job, found := load(context.Background(), file, isLocal, nil, allPorts, "", true)
	if asJSON {
		if found == nil {
			found = config.Diagnostics{}
		}
		_ = found.WriteJSON(std.out)
	} else {
		show(std.err, found)
	}
	if found.HasErrors() {
		return statusUsage, nil
	}
	if !asJSON {
		fmt.Fprintln(std.out, summary(file, job))
	}
	return statusOK, nil
}

func summary(path string, job *config.Job) string {
	procs, names := 0, 0
	var more []string // the sources of further procs
	for _, s := range job.All() {
		names += len(s.Unknown())
		if s.Spare {
			continue
		}
		procs += s.Procs()
		why := ""
		switch {
		case s.Launch != nil && len(s.Hosts) == 0:
			why = "what launch " + strconv.Quote(s.Launch.Engine) + " finds"
		case !s.CountsKnown():
			why = `procs = "auto" of other machines`
		}
		if why != "" && !slices.Contains(more, why) {
			more = append(more, why)
		}
	}
	count := plural(procs, "proc")
	switch {
	case len(more) > 0 && procs == 0:
		count = "procs by " + strings.Join(more, " and ")
	case len(more) > 0:
		count += " and those by " + strings.Join(more, " and ")
	}
	sites := plural(len(job.Sites), "site")
	if n := len(job.Spares); n > 0 {
		sites += " and " + plural(n, "spare site")
	}
	if len(job.Sites) == 0 {
		sites, count = plural(len(job.Spares), "spare site"), "no procs but those that are spawned there"
	}
	text := fmt.Sprintf("%s: %s, %s, no faults", path, sites, count)
	if names > 0 {
		text += "; host names were not looked up, so files and ports of hosts given by name were not checked"
	}
	return text
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// useNetwork makes the hosts of p listen and dial at their addresses in the site's network. Their
// names stay the same, and so does c, which was made from the addresses in the file; it is nil for
// a node that runs its whole site.
func useNetwork(p *nodeSpec, c *client.ClusterConfig) error {
	if p.site.Network == (config.Network{}) {
		return nil
	}
	all, err := interfaces(0)
	if err != nil {
		return err
	}
	hosts := slices.Clone(p.site.Hosts)
	for i := range hosts {
		h := &hosts[i]
		if c != nil && i != c.Self {
			continue
		}
		at, err := p.site.Network.Choose(h.Address, all)
		if err != nil {
			if c == nil {
				err = fmt.Errorf("host %v: %w", h, err)
			}
			return err
		}
		h.Name, h.Address = h.String(), at
	}
	p.site.Hosts = hosts
	if c != nil {
		c.Hosts = hosts
	}
	return nil
}

// interfaces returns the addresses of this machine's network interfaces that are up and do not have
// a flag.
func interfaces(without net.Flags) (all []config.Interface, err error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("this machine's network interfaces: %w", err)
	}
	for _, x := range ifs {
		if x.Flags&net.FlagUp == 0 || x.Flags&without != 0 {
			continue
		}
		addrs, err := x.Addrs()
		if err != nil {
			return nil, fmt.Errorf("the addresses of %s: %w", x.Name, err)
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, config.Interface{Name: x.Name, Address: p.Addr()})
			}
		}
	}
	return all, nil
}
