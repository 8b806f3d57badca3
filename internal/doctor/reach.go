package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/firewall"
)

const (
	reachLimit = 3 * time.Second // for a connection
	reachMost  = 64              // connections that are tried at a time
)

// reach tries to connect from this machine to the ports of a job's other hosts that are known. A
// refused connection is as good as an accepted one: it has got there, and nobody listens yet.
func reach(ctx context.Context, job *config.Job, local func(netip.Addr) bool) []Check {
	var rules []firewall.Rule
	seen := make(map[string]bool)
	for _, r := range firewall.Rules(job) {
		port, _, _ := strings.Cut(r.Ports, "-") // the first one of a range
		at := net.JoinHostPort(r.Host, port)
		if r.Proto != "tcp" || r.Ports == "any" || seen[at] || isLocal(r.Host, local) && r.Site != "" || !fromHere(r.From, local) {
			continue
		}
		seen[at] = true
		r.Host = at
		rules = append(rules, r)
	}
	if len(rules) == 0 {
		return []Check{ok("other hosts", "there are none with ports that the file names and that this machine dials")}
	}
	list := make([]Check, len(rules))
	free := make(chan struct{}, reachMost)
	var wg sync.WaitGroup
	for i, r := range rules {
		wg.Go(func() {
			free <- struct{}{}
			list[i] = dial(ctx, r)
			<-free
		})
	}
	wg.Wait()
	return list
}

// isLocal reports whether a host is this machine, as far as its address is known.
func isLocal(host string, local func(netip.Addr) bool) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && local(ip)
}

// fromHere reports whether this machine is among those who connect.
func fromHere(from []string, local func(netip.Addr) bool) bool {
	for _, f := range from {
		if isLocal(f, local) {
			return true
		}
	}
	return false
}

// dial connects to a port of another host.
func dial(ctx context.Context, r firewall.Rule) Check {
	c := ok("reaches "+r.Host, r.For)
	d := net.Dialer{Timeout: reachLimit}
	conn, err := d.DialContext(ctx, "tcp", r.Host)
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case err == nil:
		_ = conn.Close()
		c.Found += ": it listens"
	case errors.Is(err, syscall.ECONNREFUSED):
		c.Found += ": nobody listens yet"
	case errors.As(err, &dns):
		c.State, c.Found, c.Remedy = Fail, err.Error(), "write the address, or see that the name is known here"
	case errors.As(err, &timeout) && timeout.Timeout():
		c.State, c.Found = Fail, fmt.Sprintf("%s: no answer within %v", r.For, reachLimit)
		c.Remedy = fmt.Sprintf("see that the machine is up, and that its firewall lets tcp %s in (impi-node ports lists all)", r.Ports)
	default:
		c.State, c.Found, c.Remedy = Fail, err.Error(), "see the routes to that address (ip route get), and its firewall (impi-node ports)"
	}
	return c
}
