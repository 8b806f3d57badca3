package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/hostlist"
	"github.com/openimpi/impi/internal/launch/manifest"
	"github.com/openimpi/impi/internal/site/report"
)

// resolver returns the addresses of host names. net.Resolver implements it.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

var systemResolver resolver = net.DefaultResolver

// The time before a name without an address is looked up again, and the number of concurrent
// look-ups.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 2 * time.Second
	mostAsked  = 32
)

// The interval of messages about names that are missing, and the time for which names of a command
// line are looked up: an unknown one is a typing error, as with mpiexec, while names of a job file
// may get addresses late.
const (
	namesReport = 3 * time.Second
	typedNames  = 4 * time.Second
)

// lookup finds the addresses of host names in a job file. Names may get their addresses only while
// the job starts, as those of containers do.
type lookup struct {
	resolver resolver
	isLocal  func(netip.Addr) bool
	pause    func(ctx context.Context, d time.Duration)
	self     string // a name that must have an address of this machine; "": none

	mu     sync.Mutex
	known  map[string][]netip.Addr
	faults map[string]error // the last errors of names without an address
}

// lookUp looks up the host names of the job file whose addresses a run needs, until all are known
// or the job's limit for the start has passed. took is how long it took.
func lookUp(o *options, isLocal func(netip.Addr) bool, std streams) (addresses map[string]netip.Addr, took time.Duration, found config.Diagnostics) {
	opt := loadOptions()
	opt.Local, opt.Allocation = isLocal, allocated(o.site)
	job, found := config.Load(o.file, opt)
	if job == nil {
		return nil, 0, found
	}
	if err := o.ofContainer(job, os.LookupEnv); err != nil {
		return nil, 0, fault(err)
	}
	return lookUpIn(o, job, isLocal, std)
}

// ofContainer chooses the host for this process by the index of its container, if it has one and
// the command line does not name a host.
func (o *options) ofContainer(job *config.Job, environ func(string) (string, bool)) error {
	sites := candidates(job, o.site)
	if o.host != "" || len(sites) != 1 || sites[0].Launch != nil {
		return nil
	}
	s := sites[0]
	i, variable, found := manifest.Index(environ, s.Hosts)
	switch {
	case !found:
		return nil
	case i >= len(s.Hosts):
		return fmt.Errorf("this is container %d, as %s says, but site %s has the hosts 0 to %d: start as many containers as the file has hosts", i, variable, s.Name, len(s.Hosts)-1)
	}
	o.site, o.host, o.container = s.Name, s.Hosts[i].Name, true
	return nil
}

// lookUpIn is lookUp for a job whose file has been read, or that has none.
func lookUpIn(o *options, job *config.Job, isLocal func(netip.Addr) bool, std streams) (addresses map[string]netip.Addr, took time.Duration, found config.Diagnostics) {
	sites := candidates(job, o.site)
	if len(unknownNames(sites)) == 0 {
		return nil, 0, nil
	}
	start, limit := time.Now(), job.Limits.Start
	if o.on != "" {
		limit = min(limit, typedNames)
	}
	ctx, cancel := context.WithDeadline(context.Background(), start.Add(limit))
	defer cancel()
	log, limiter := o.logger(sites[0], std.err)
	defer limiter.Close()
	l := &lookup{resolver: systemResolver, isLocal: isLocal, pause: wait}
	if o.container {
		l.self = o.host // which may still have the address of an earlier container
	}
	stop := report.LogWaitEvery(namesReport, log, start.Add(limit), l.waitsFor)
	addresses, missing := l.run(ctx, sites, o.site == "")
	stop()
	found = l.diagnose(job, missing, limit, o.on != "", len(sites) > 1 && o.site == "")
	return addresses, time.Since(start), found
}

// candidates returns the sites that this process may run: the named one, or all of ours.
func candidates(job *config.Job, name string) []config.Site {
	return slices.DeleteFunc(job.All(), func(s config.Site) bool {
		return s.Foreign || name != "" && s.Name != name
	})
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func unknownNames(sites []config.Site) (names []config.HostName) {
	seen := make(map[string]bool)
	for _, s := range sites {
		for _, n := range s.Unknown() {
			if !seen[n.Name] {
				seen[n.Name] = true
				names = append(names, n)
			}
		}
	}
	return names
}

// run looks up the names of sites until all have addresses, or until ctx ends; missing are then the
// names without one. With whole, the sites are those of the whole file: as soon as some of them
// have a host on this machine, the names of the others do not matter.
func (l *lookup) run(ctx context.Context, sites []config.Site, whole bool) (addresses map[string]netip.Addr, missing []config.HostName) {
	l.mu.Lock() // waitsFor may be called already
	l.known, l.faults = make(map[string][]netip.Addr), make(map[string]error)
	l.mu.Unlock()
	missing = unknownNames(sites)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		l.ask(ctx, missing)
		if here := l.here(sites); whole && len(here) > 0 {
			sites = here
		}
		missing = slices.DeleteFunc(unknownNames(sites), func(n config.HostName) bool { return len(l.known[n.Name]) > 0 })
		if len(missing) == 0 {
			return l.choose(sites), nil
		}
		if l.pause(ctx, pause); ctx.Err() != nil {
			return nil, missing
		}
	}
}

func (l *lookup) ask(ctx context.Context, names []config.HostName) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, mostAsked)
	for _, n := range names {
		slots <- struct{}{}
		wg.Go(func() {
			addrs, err := l.resolver.LookupNetIP(ctx, "ip", n.Name)
			<-slots
			l.take(n.Name, addrs, err, ctx.Err() != nil)
		})
	}
	wg.Wait()
}

// take records an answer. With late, the answer came because the time was over, and an earlier
// error says more.
func (l *lookup) take(name string, addrs []netip.Addr, err error, late bool) {
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	usable := slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool {
		return a.IsUnspecified() || a.IsMulticast() || a.Zone() != ""
	})
	if err == nil && len(usable) == 0 {
		err = fmt.Errorf("lookup %s: the address is %v, which peers cannot dial", name, addrs)
	}
	if err == nil && name == l.self && !slices.ContainsFunc(usable, l.isLocal) {
		err = fmt.Errorf("lookup %s: the address is %v, which this container does not have, though the name is its own", name, addrs)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.known[name] = usable
	case !late || l.faults[name] == nil:
		l.faults[name] = err
	}
}

func (l *lookup) here(sites []config.Site) (here []config.Site) {
	for _, s := range sites {
		if slices.ContainsFunc(s.Hosts, func(h config.Host) bool {
			return h.Address.IsValid() && l.isLocal(h.Address) || slices.ContainsFunc(l.known[h.Name], l.isLocal)
		}) {
			here = append(here, s)
		}
	}
	return here
}

// choose gives each name one of its addresses: one of this machine if possible, and of a family
// that all names have if possible. The resolver's order is ignored, because it differs between
// machines.
func (l *lookup) choose(sites []config.Site) map[string]netip.Addr {
	all := slices.Collect(maps.Values(l.known))
	for _, s := range sites {
		for _, h := range s.Hosts {
			if h.Address.IsValid() {
				all = append(all, []netip.Addr{h.Address})
			}
		}
	}
	common := func(is func(netip.Addr) bool) bool {
		return !slices.ContainsFunc(all, func(addrs []netip.Addr) bool { return !slices.ContainsFunc(addrs, is) })
	}
	is6 := common(netip.Addr.Is6) && !common(netip.Addr.Is4)
	rank := func(a netip.Addr) int {
		n := 0
		if a.Is6() != is6 {
			n = 4 // counts only if the hosts have no common family
		}
		switch {
		case !l.isLocal(a):
			n += 2
		case a.IsLoopback():
			n++
		}
		return n
	}
	chosen := make(map[string]netip.Addr, len(l.known))
	for name, addrs := range l.known {
		chosen[name] = slices.MinFunc(addrs, func(a, b netip.Addr) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Compare(b))
		})
	}
	return chosen
}

func (l *lookup) waitsFor() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name := range l.faults {
		if l.known[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("DNS: %s (%s)", hostlist.Compress(names), shortly(l.faults[names[0]]))
}

func shortly(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "not found"
	case errors.As(err, &dns) && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	}
	return err.Error()
}

// diagnose returns the faults for names that got no address within limit, one for each place in the
// file, or for the command line if they were typed there.
func (l *lookup) diagnose(job *config.Job, missing []config.HostName, limit time.Duration, typed, others bool) (found config.Diagnostics) {
	for len(missing) > 0 {
		pos := missing[0].Pos
		var names []string
		missing = slices.DeleteFunc(missing, func(n config.HostName) bool {
			if n.Pos == pos {
				names = append(names, n.Name)
			}
			return n.Pos == pos
		})
		err := l.faults[names[0]]
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("lookup %s: no answer", names[0])
		}
		remedy := fmt.Sprintf("see what `getent ahosts %s` prints on this machine; correct the name, write the address instead, or ", names[0])
		if typed {
			remedy += "use a job file: impi-node waits for the names in it"
		} else {
			remedy += `wait longer with limits { start = "5m" }`
		}
		if others {
			remedy += "; if this machine runs another site, name that with -site"
		}
		found = append(found, job.Fault(pos, fmt.Sprintf("no address for %s in %v of look-ups: %v", hostlist.Compress(names), limit, err), remedy))
	}
	return found
}
