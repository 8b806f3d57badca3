package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/transports"
)

// local tells which addresses are this machine's.
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

// checkPort tries to listen.
func checkPort(a netip.AddrPort) error {
	l, err := net.Listen("tcp", a.String())
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return err
	}
	return l.Close()
}

// load reads and checks a job file, the transports' settings included. ports
// tells which listeners' ports to try; nil stands for none.
func load(path string, isLocal func(netip.Addr) bool, ports func(netip.AddrPort) bool) (*config.Job, config.Diagnostics) {
	opt := loadOptions()
	opt.Local = isLocal
	if ports != nil {
		opt.CheckPort = func(a netip.AddrPort) error {
			if !ports(a) {
				return nil
			}
			return checkPort(a)
		}
	}
	job, found := config.Load(path, opt)
	if job == nil {
		return nil, found
	}
	ours := job.LocalSites(isLocal)
	for _, s := range job.Sites {
		here := slices.ContainsFunc(ours, func(o config.Site) bool { return o.Name == s.Name })
		for _, t := range s.Transports {
			found = append(found, checkSettings(job, t, here)...)
		}
	}
	return job, dedupe(found)
}

func allPorts(netip.AddrPort) bool { return true }

// portsOf gives the ports that a site opens: another one's node may be running
// on this machine. A file with faults has none.
func portsOf(path, site string, isLocal func(netip.Addr) bool) func(netip.AddrPort) bool {
	ours := make(map[netip.AddrPort]bool)
	opt := loadOptions()
	opt.Local = isLocal
	if job, _ := config.Load(path, opt); job != nil {
		s, _ := job.Site(site)
		ours[s.Server.Address] = s.Server.Embedded
		for _, h := range s.Hosts {
			ours[netip.AddrPortFrom(h.Address, h.Port)] = true
		}
	}
	return func(a netip.AddrPort) bool { return ours[a] }
}

// checkSettings has a built-in transport judge its config block. What a plugin
// from outside says is known when it has been started. Files are looked for on the
// site's own machines only.
func checkSettings(job *config.Job, t config.Transport, here bool) (found config.Diagnostics) {
	b, ok := findBuiltin(t.Name)
	if !ok || !t.Builtin {
		return nil
	}
	made := b.make()
	schema, given := made.Schema(), t.SettingMap()
	settings, err := host.Complete(schema, host.Absolute(schema, given, t.Dir))
	if err == nil && (here || !namesFiles(schema, given)) {
		err = made.Configure(settings)
	}
	for _, e := range settingErrors(err) {
		found = append(found, job.TransportFault(t, e.Name, e.Problem, e.Remedy))
	}
	return found
}

// namesFiles tells whether there are paths among settings.
func namesFiles(schema []transports.Setting, given map[string]any) bool {
	return slices.ContainsFunc(schema, func(s transports.Setting) bool {
		path, _ := given[s.Name].(string)
		return s.Type == transports.TypePath && path != ""
	})
}

// settingErrors gives the faults that are joined in an error.
func settingErrors(err error) (list []*transports.SettingError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, settingErrors(e)...)
		}
		return list
	}
	var e *transports.SettingError
	if errors.As(err, &e) {
		list = append(list, e)
	}
	return list
}

// dedupe leaves out what several sites share: one block, one fault.
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

// show prints diagnostics for people.
func show(f *os.File, ds config.Diagnostics) {
	_ = ds.WriteText(f, isTerminal(f)) // there is nowhere to report that to
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// validate is the subcommand.
func validate(args []string, std streams) int {
	f := flag.NewFlagSet("validate", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	asJSON := f.Bool("json", false, "print the faults as JSON")
	files, err := parseMixed(f, args)
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("give one job file, not %d", len(files))
	}
	if err != nil {
		fmt.Fprintf(std.err, "impi-node validate: %v\nUsage: impi-node validate JOB.HCL [-json]\n", err)
		return statusUsage
	}
	isLocal, err := local()
	if err != nil {
		complain(std.err, err)
		return statusUsage
	}
	job, found := load(files[0], isLocal, allPorts)
	if *asJSON {
		if found == nil {
			found = config.Diagnostics{}
		}
		_ = found.WriteJSON(std.out)
	} else {
		show(std.err, found)
	}
	if found.HasErrors() {
		return statusUsage
	}
	if !*asJSON {
		fmt.Fprintln(std.out, summary(files[0], job))
	}
	return statusOK
}

// parseMixed reads flags before and behind other arguments.
func parseMixed(f *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
}

func summary(path string, job *config.Job) string {
	procs := 0
	for _, s := range job.Sites {
		procs += s.Procs()
	}
	return fmt.Sprintf("%s: %d sites, %d procs, no faults", path, len(job.Sites), procs)
}
