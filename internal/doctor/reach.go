package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/firewall"
)

const (
	reachLimit = 3 * time.Second        // maximum time of a connection attempt
	reachMost  = 64                     // connections that are tried at a time
	sendEvery  = 250 * time.Millisecond // pause between datagrams, which may be lost
	anyUDP     = "49999"                // stands for the UDP ports that the system chooses
)

// reach tries to connect from this machine to the ports of a job's other hosts that are known. A
// refused connection is as good as an accepted one: it has got there, and nobody listens yet. What
// goes by UDP is tried by UDP, since firewalls treat it differently.
func reach(ctx context.Context, job *config.Job, local func(netip.Addr) bool) []Check {
	rules := tries(job, local)
	if len(rules) == 0 {
		return []Check{ok("other hosts", "there are none with ports that the file names and that this machine dials")}
	}
	list := make([]Check, len(rules))
	free := make(chan struct{}, reachMost)
	var wg sync.WaitGroup
	for i, r := range rules {
		wg.Go(func() {
			free <- struct{}{}
			if r.Proto == "udp" {
				list[i] = dialUDP(ctx, r)
			} else {
				list[i] = dial(ctx, r)
			}
			<-free
		})
	}
	wg.Wait()
	return list
}

// tries lists what this machine dials, one port of each rule. Host of a rule has the port as well.
func tries(job *config.Job, local func(netip.Addr) bool) (rules []firewall.Rule) {
	seen := make(map[string]bool)
	for _, r := range firewall.Rules(job) {
		port, _, _ := strings.Cut(r.Ports, "-") // the first one of a range
		tried := r.Proto == "tcp" && r.Ports != "any" || r.Proto == "udp"
		if r.Proto == "udp" && r.Ports == "any" {
			port = anyUDP
		}
		at := net.JoinHostPort(r.Host, port)
		if !tried || seen[r.Proto+at] || isLocal(r.Host, local) && r.Site != "" || !fromHere(r.From, local) {
			continue
		}
		seen[r.Proto+at] = true
		r.Host = at
		rules = append(rules, r)
	}
	return rules
}

// isLocal reports whether a host is this machine, as far as its address is known.
func isLocal(host string, local func(netip.Addr) bool) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && local(ip)
}

func fromHere(from []string, local func(netip.Addr) bool) bool {
	return slices.ContainsFunc(from, func(f string) bool { return isLocal(f, local) })
}

func dial(ctx context.Context, r firewall.Rule) Check {
	c := ok("reaches "+r.Host, r.For)
	d := net.Dialer{Timeout: reachLimit}
	conn, err := d.DialContext(ctx, "tcp", r.Host)
	if err == nil {
		_ = conn.Close()
		c.Found += ": it listens"
		return c
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		c.State, c.Found = Fail, fmt.Sprintf("%s: no answer within %v", r.For, reachLimit)
		c.Remedy = fmt.Sprintf("see that the machine is up, and that its firewall lets tcp %s in (impi-node ports lists all)", r.Ports)
		return c
	}
	return judge(c, err)
}

// dialUDP sends datagrams to a port of another host, which refuses them if nobody listens there. If
// nothing comes back that may have several reasons, so that it is only a warning.
func dialUDP(ctx context.Context, r firewall.Rule) Check {
	c := ok("reaches "+r.Host+" by UDP", r.For)
	d := net.Dialer{Timeout: reachLimit}
	conn, err := d.DialContext(ctx, "udp", r.Host)
	if err != nil {
		return judge(c, err)
	}
	defer conn.Close()
	for end := time.Now().Add(reachLimit); time.Now().Before(end); {
		_ = conn.SetDeadline(time.Now().Add(sendEvery))
		if _, err = conn.Write([]byte("impi-node doctor")); err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		switch {
		case err == nil:
			c.Found += ": it listens"
			return c
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return judge(c, err)
		}
	}
	c.State, c.Found = Warn, fmt.Sprintf("%s: no answer within %v: a firewall may drop UDP, or somebody listens there already", r.For, reachLimit)
	c.Remedy = fmt.Sprintf("see that the firewalls of both machines let udp %s through (impi-node ports lists all); if a job runs there, try again when it has ended", r.Ports)
	return c
}

func judge(c Check, err error) Check {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		c.Found += ": nobody listens yet"
	case errors.As(err, &dns):
		c.State, c.Found, c.Remedy = Fail, err.Error(), "write the address, or see that the name is known here"
	default:
		c.State, c.Found, c.Remedy = Fail, err.Error(), "see the routes to that address (ip route get), and its firewall (impi-node ports)"
	}
	return c
}
