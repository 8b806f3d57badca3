package spawn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// plan has what a plan of commands whose info key host has these values says: the client and host
// of each part, and how many commands it has.
func plan(j *Job, hosts ...string) (string, *Refusal) {
	list := commands(make([]int, len(hosts))...)
	for i, h := range hosts {
		if h != "" {
			list[i].Info = map[string]string{"host": h}
		}
	}
	parts, r := j.Plan("w", list)
	var text []string
	number := 0
	for _, p := range parts {
		where := p.Host
		if p.Hosts != nil {
			where = fmt.Sprint(p.Hosts)
		}
		text = append(text, fmt.Sprintf("%d %s x%d", p.Client, where, len(p.Commands)))
		for _, c := range p.Commands {
			if c.Number != number || p.World != "w" {
				text = append(text, fmt.Sprintf("command %d of %s", c.Number, p.World))
			}
			number++
		}
	}
	return strings.Join(text, "; "), r
}

func TestPlan(t *testing.T) {
	hosts := func(list ...string) (all []Host) {
		for _, a := range list {
			all = append(all, Host{Addresses: []netip.Addr{netip.MustParseAddr(a)}})
		}
		return all
	}
	j := &Job{Self: 1, SpawnerHost: 1, Names: []string{"here.example"}, Sites: []Site{
		{Name: "alpha", Hosts: hosts("10.0.0.9")},
		{Name: "beta", Hosts: hosts("10.0.0.1", "10.0.0.2", "10.0.0.3")},
		{Hosts: hosts("10.0.1.1", "10.0.1.2")},
		{Name: "here.example", Hosts: hosts("10.0.2.1")},
		{Name: "delta", Hosts: hosts("10.0.0.3")}, // of the same machine as a host of beta
	}}
	third := &j.Sites[1].Hosts[2]
	third.Names, third.Addresses = []string{"node3", "node3.example"}, append(third.Addresses, netip.MustParseAddr("192.168.0.3"))
	for _, tt := range []struct {
		name   string
		spread bool
		hosts  []string
		want   string // the parts
		about  int    // command that is refused
		why    string
	}{
		{name: "where the spawner is", hosts: []string{""}, want: "1 [1] x1"},
		{name: "localhost is there too", hosts: []string{"", "localhost"}, want: "1 [1] x2"},
		{name: "the name of the machine comes before that of a site", hosts: []string{"here.example"}, want: "1 [1] x1"},
		{name: "the own site is its first host", hosts: []string{"beta"}, want: "1 [0] x1"},
		{name: "all machines of the site, those of the spawner's first", spread: true, hosts: []string{"", ""}, want: "1 [1 2 0] x2"},
		{name: "localhost is one machine", spread: true, hosts: []string{"localhost", ""}, want: "1 [1] x1; 1 [1 2 0] x1"},
		{name: "the own site is all machines in order", spread: true, hosts: []string{"beta"}, want: "1 [0 1 2] x1"},
		{name: "another host of the own site", hosts: []string{"", "10.0.0.1"}, want: "1 [1] x1; 1 [0] x1"},
		{name: "a host has several names and addresses", hosts: []string{"node3", "node3.example", "10.0.0.3", "192.168.0.3"}, want: "1 [2] x4"},
		{name: "a list is in its order, each host once", hosts: []string{"node3,10.0.0.1, node3.example"}, want: "1 [2 0] x1"},
		{name: "another site chooses the host", spread: true, hosts: []string{"alpha"}, want: "0  x1"},
		{name: "a host of another site", hosts: []string{"10.0.1.2"}, want: "2 10.0.1.2 x1"},
		{name: "a site by name and its host are different parts", hosts: []string{"alpha", "10.0.0.9"}, want: "0  x1; 0 10.0.0.9 x1"},
		{name: "the order of commands is that of ranks", hosts: []string{"", "alpha", ""}, want: "1 [1] x1; 0  x1; 1 [1] x1"},
		{name: "as many clients as a world may have", hosts: strings.Split(strings.TrimSuffix(strings.Repeat("alpha,beta,", MaxClients/2), ","), ","), want: strings.TrimSuffix(strings.Repeat("0  x1; 1 [0] x1; ", MaxClients/2), "; ")},
		{name: "one client more", hosts: strings.Split(strings.Repeat("alpha,beta,", MaxClients/2)+"alpha", ","), about: -1, why: "in 33 groups at one site each, at most 32"},
		{name: "parts at the own site are one client", hosts: strings.Split(strings.TrimSuffix(strings.Repeat("10.0.0.1,10.0.0.2,", MaxClients), ","), ","), want: strings.TrimSuffix(strings.Repeat("1 [0] x1; 1 [1] x1; ", MaxClients), "; ")},
		{name: "parts at another site are not", hosts: strings.Split(strings.Repeat("10.0.1.1,10.0.1.2,", MaxClients/2)+"10.0.1.1", ","), about: -1, why: "in 33 groups"},
		{name: "nobody's name", hosts: []string{"", "gamma"}, about: 1, why: `command 1 (prog): there is no site or host "gamma" in the job, which has alpha, beta, 10.0.1.1, here.example`},
		{name: "nobody's address", hosts: []string{"10.9.9.9"}, about: 0, why: `"10.9.9.9"`},
		{name: "one of a list is nobody's", hosts: []string{"node3,node4"}, about: 0, why: `no site or host "node4"`},
		{name: "no name in a list", hosts: []string{"node3,"}, about: 0, why: `no site or host ""`},
		{name: "hosts of two sites", hosts: []string{"node3,10.0.0.9"}, about: 0, why: "of several sites: spawn a command at each"},
		{name: "two hosts of another site", hosts: []string{"10.0.1.1,10.0.1.2"}, about: 0, why: "several of another site: spawn a command at each"},
	} {
		j.Spread = tt.spread
		got, r := plan(j, tt.hosts...)
		tells(t, tt.name, r, tt.about, tt.why)
		if tt.why == "" && got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
