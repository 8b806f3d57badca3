package agent

import (
	"testing"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// TestConfigOf: hosts of the same site take PkFail and are not asked, hosts of others as far as
// both sites say that they know how, and asked are only those that prove who they are.
func TestConfigOf(t *testing.T) {
	all := []wire.Version{wire.Version00, wire.PrivateVersion, wire.FailVersion, wire.AskVersion}
	job := &startup.Job{
		DataLen: 1 << 20, AckMark: 3, HiWater: 7, Secret: [startup.TokenSize]byte{1},
		Clients: []startup.ClientInfo{
			{NHosts: 2, Own: true, Versions: all},
			{FirstHost: 2, NHosts: 1, Own: true, Versions: all},
			{FirstHost: 3, NHosts: 1, Own: true, Versions: all[:2]},
			{FirstHost: 4, NHosts: 1, Versions: all}, // it only says so
		},
		Hosts: []startup.HostInfo{{Port: 1}, {Port: 1}, {Client: 1, Port: 1}, {Client: 2, Port: 1}, {Client: 3, Port: 1}},
	}
	c := ConfigOf(NewChannels(ChannelsConfig{Job: job, Hosts: []wire.HostRank{1}}), 1, true, wire.Draft)
	if c.Self != 1 || c.MaxData != 1<<20 || c.AckMark != 3 || c.HiWater != 7 || c.Dialect != wire.Draft || len(c.Hosts) != 5 {
		t.Errorf("%+v", c)
	}
	for i, want := range []Host{
		{Own: true, Fails: true, Survives: true},
		{Own: true, Fails: true, Survives: true},
		{Client: 1, Own: true, Fails: true, Asks: true, Survives: true},
		{Client: 2, Own: true, Survives: true},
		{Client: 3, Fails: true, Survives: true},
	} {
		if c.Hosts[i] != want {
			t.Errorf("host %d: %+v, want %+v", i, c.Hosts[i], want)
		}
	}
}
