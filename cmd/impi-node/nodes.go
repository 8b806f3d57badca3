package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/hostlist"
	"github.com/openimpi/impi/internal/operator/reload"
	"github.com/openimpi/impi/internal/site/client"
)

// nodeSpec is what one node runs: a site, or one host of a site that has others on other machines.
type nodeSpec struct {
	site config.Site
	host int // index in site.Hosts, or allHosts

	launches      bool                 // it starts the nodes of other hosts
	order         *hostOrder           // order to pass on to those hosts; nil at the head
	starter       chan struct{}        // closed when the node that has started this one is gone; nil if none has
	source        *reload.Source       // where site comes from; nil: there is no file that can be read again
	reloaded      func()               // reports to the launcher that changes of the file were applied; may be nil
	lost          func(wire.Lost)      // reports lost procs to the launcher; may be nil
	fault         error                // why this machine cannot be part of the site, reported to the other hosts; or nil
	clusterConfig client.ClusterConfig // how the node finds the other hosts, if a launcher has sent it
}

const allHosts = -1

// alone reports whether no node on another machine waits for this one: it runs all hosts of its
// site, or starts the others.
func (p *nodeSpec) alone() bool { return p.host == allHosts || p.launches }

// orphaned reports whether a signal comes from the machine's guard, because the node that has
// started this one is gone. Then the head is about to say so, and no operator has ended the job.
func (p *nodeSpec) orphaned() bool {
	if p.starter == nil {
		return false
	}
	select {
	case <-p.starter:
		return true
	case <-time.After(guardWord): // the end of standard input may be noticed after the signal
		return false
	}
}

// guardWord is how long after a signal the end of standard input that comes with it may be noticed.
const guardWord = 100 * time.Millisecond

// nodesOf returns what runs on this machine: the whole of sites all of whose hosts are here, and of
// other sites the hosts that are here. wanted, if not empty, is the address or name of the only
// host to run.
func nodesOf(sites []config.Site, wanted string) (nodes []nodeSpec, err error) {
	isLocal, err := local()
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		here := s.HostsHere(isLocal)
		if wanted != "" {
			i := hostCalled(wanted, s.Hosts)
			if i < 0 {
				return nil, fmt.Errorf("site %s has no host %s; it has %s", s.Name, wanted, hostNames(s.Hosts))
			}
			if !slices.Contains(here, i) {
				return nil, fmt.Errorf("host %s of site %s is not this machine: no interface here has that address", wanted, s.Name)
			}
			here = []int{i}
		}
		switch {
		case len(s.Hosts) == 0:
			_, err := allocation(*s.Launch)
			return nil, fmt.Errorf("launch %[2]q finds no hosts for site %[1]s: %[3]w", s.Name, s.Launch.Engine, err)
		case s.Launch != nil && wanted == "" && len(s.Hosts) > 1:
			if !isLocal(s.Hosts[0].Address) {
				return nil, fmt.Errorf("the head of site %s is %s, whose node starts those of the other hosts: run it there", s.Name, s.Hosts[0])
			}
			nodes = append(nodes, nodeSpec{site: s, host: 0, launches: true})
			continue
		case len(s.Hosts) == 1, wanted == "" && len(here) == len(s.Hosts):
			nodes = append(nodes, nodeSpec{site: s, host: allHosts})
			continue
		case len(here) == 0:
			return nil, fmt.Errorf("site %s is not on this machine, but on %s: run it there", s.Name, hostNames(s.Hosts))
		case !s.Auth.Keyed:
			return nil, fmt.Errorf("site %s has hosts on several machines, which must have a key in common: add auth \"key\" { file = \"job.key\" } to the job file, and copy the key's file to all of them", s.Name)
		}
		for _, i := range here {
			p := nodeSpec{site: s, host: i}
			p.site.Server.Embedded = s.Server.Embedded && i == 0
			nodes = append(nodes, p)
		}
	}
	return nodes, nil
}

// hostCalled returns the index of a host by its address or name; -1: not found.
func hostCalled(wanted string, hosts []config.Host) int {
	return slices.IndexFunc(hosts, func(h config.Host) bool {
		a, err := netip.ParseAddr(wanted)
		return err == nil && h.Address == a || h.Name == wanted
	})
}

// cluster returns how the node finds those of the site's other hosts; nil if it runs all hosts.
func (p *nodeSpec) cluster() *client.ClusterConfig {
	if p.host == allHosts {
		return nil
	}
	c := p.clusterConfig
	c.Hosts, c.Self = p.site.Hosts, p.host
	if c.Secret == nil {
		c.Secret, c.Head = siteSecret(p.site), p.site.HeadAddress().String()
	}
	return &c
}

// siteSecret is what the hosts of a site prove to each other. It cannot be derived from the key's
// use at the server.
func siteSecret(s config.Site) []byte {
	h := hmac.New(sha256.New, binary.BigEndian.AppendUint64(nil, s.Auth.Key))
	h.Write([]byte("impi: hosts of site " + s.Name))
	return h.Sum(nil)
}

func hostNames(hosts []config.Host) string {
	var list []string
	for _, h := range hosts {
		list = append(list, h.String())
	}
	return hostlist.Compress(list)
}

func (p *nodeSpec) procs() int {
	if p.host != allHosts {
		return p.site.Hosts[p.host].Procs
	}
	return p.site.Procs()
}
