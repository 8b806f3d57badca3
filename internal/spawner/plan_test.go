package spawner

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/spawn"
)

// names are what a DNS has, and what it was asked.
type names struct {
	has   map[string]string
	asked []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) (all []netip.Addr, err error) {
	n.asked = append(n.asked, host)
	if a, ok := n.has[host]; ok {
		all = append(all, netip.MustParseAddr("192.0.2.99"), netip.MustParseAddr(a))
	}
	return all, nil
}

// TestLookUp: a name that the file does not have is that of the hosts with its address, of any
// site; names and addresses that the job knows are not looked up.
func TestLookUp(t *testing.T) {
	host := func(a string, names ...string) spawn.Host {
		return spawn.Host{Addresses: []netip.Addr{netip.MustParseAddr(a)}, Names: names}
	}
	j := &spawn.Job{Names: []string{"here"}, Sites: []spawn.Site{
		{Name: "alpha", Hosts: []spawn.Host{host("10.0.0.1"), host("10.0.0.2", "node2"), host("10.0.0.2")}},
		{Name: "beta", Hosts: []spawn.Host{host("10.0.1.1")}},
	}}
	dns := &names{has: map[string]string{"node2.example": "::ffff:10.0.0.2", "far.example": "10.0.1.1", "alpha": "10.0.1.1"}}
	for _, name := range []string{"alpha", "here", "localhost", "10.0.1.1", "node2", "node2.example", "far.example", "nobody"} {
		lookUp(t.Context(), dns, j, name)
	}
	if !slices.Equal(dns.asked, []string{"node2.example", "far.example", "nobody"}) {
		t.Errorf("%q were asked for", dns.asked)
	}
	for i, want := range [][]string{nil, {"node2", "node2.example"}, {"node2.example"}} {
		if got := j.Sites[0].Hosts[i].Names; !slices.Equal(got, want) {
			t.Errorf("host %d has names %q, not %q", i, got, want)
		}
	}
	if got := j.Sites[1].Hosts[0].Names; !slices.Equal(got, []string{"far.example"}) {
		t.Errorf("the other site's host has names %q", got)
	}
}

// TestNamesOf: the keys host and hosts are lists; what is no list is refused.
func TestNamesOf(t *testing.T) {
	for _, tt := range []struct {
		info map[string]string
		want []string
		ok   bool
	}{
		{map[string]string{"wdir": "/"}, nil, true},
		{map[string]string{"host": "alpha"}, []string{"alpha"}, true},
		{map[string]string{"hosts": "node[1-2],node7"}, []string{"node1", "node2", "node7"}, true},
		{map[string]string{"host": "a", "hosts": "b"}, []string{"a"}, true},
		{map[string]string{"host": "a, b"}, []string{"a", "b"}, true},
		{map[string]string{"host": "node[1-"}, nil, false},
		{map[string]string{"host": "node[1-9999]"}, nil, false},
	} {
		got, problem := namesOf(tt.info)
		if !slices.Equal(got, tt.want) || (problem == "") != tt.ok {
			t.Errorf("%v: %q, %q", tt.info, got, problem)
		}
	}
}
