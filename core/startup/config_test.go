package startup

import (
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func TestClientConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ClientConfig)
		says   string
	}{
		"rank 32":         {func(c *ClientConfig) { c.Rank = 32 }, "client rank 32"},
		"rank -1":         {func(c *ClientConfig) { c.Rank = -1 }, "client rank -1"},
		"no mechanism":    {func(c *ClientConfig) { c.Auth = Auth{} }, "no authentication mechanism"},
		"no host":         {func(c *ClientConfig) { c.Hosts = nil }, "needs a host"},
		"no proc":         {func(c *ClientConfig) { c.Hosts[0].Procs = nil }, "procs, not 0"},
		"port":            {func(c *ClientConfig) { c.Hosts[0].Port = 65536 }, "port 65536"},
		"data length":     {func(c *ClientConfig) { c.Params.DataLen = 0 }, "data length"},
		"tag bound":       {func(c *ClientConfig) { c.Params.TagUB = 32766 }, "32766"},
		"XSIZE":           {func(c *ClientConfig) { c.Params.XSize = -2 }, "XSIZE -2"},
		"MAXLINEAR":       {func(c *ClientConfig) { c.Params.MaxLinear = -2 }, "MAXLINEAR -2"},
		"ackmark":         {func(c *ClientConfig) { c.Params.AckMark = 0 }, "ackmark 0"},
		"hiwater":         {func(c *ClientConfig) { c.Params.HiWater = 31 }, "ackmark 32"},
		"one proc twice":  {func(c *ClientConfig) { c.Hosts[0].Procs[1].ID.PID = 100 }, "two procs are 10.0.0.1/100"},
		"card":            {func(c *ClientConfig) { c.Hosts[0].Procs[1].Card = make([]byte, MaxCard+1) }, "4097 bytes"},
		"pid for a draft": {func(c *ClientConfig) { c.Dialect, c.Hosts[0].Procs[1].ID.PID = wire.Draft, 1<<32 }, "pid 4294967296"},
	} {
		cfg := testClient(0, 2)
		c.change(&cfg)
		if _, err := NewClient(cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg := testClient(31, 2)
	if _, err := NewClient(cfg); err != nil {
		t.Error(err)
	}
}

func TestServerConfigFaults(t *testing.T) {
	none := Auth{None: true}
	for name, cfg := range map[string]ServerConfig{
		"no clients": {Auth: none}, "33 clients": {Clients: 33, Auth: none}, "no mechanism": {Clients: 2},
	} {
		if _, err := NewServer(cfg, scriptStart); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
