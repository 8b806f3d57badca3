package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// TestMain makes the test's program the plugin that it tests.
func TestMain(m *testing.M) {
	if sdk.IsPlugin() {
		main()
	}
	os.Exit(m.Run())
}

// log is what a plugin logs.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// start runs the plugin under a name of its own.
func start(t *testing.T, name string, settings map[string]any) (*host.Plugin, *log) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "impi-transport-"+name)
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	seen := &log{}
	p, err := host.Start(t.Context(), host.Config{
		Name: name, Path: path, Settings: settings, Logger: hclog.New(&hclog.LoggerOptions{Output: seen, Level: hclog.Warn}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, seen
}

// The plugin is what its binary is called, and its links keep the contract by any
// data plane although they are disturbed.
func TestPluginKeepsTheContract(t *testing.T) {
	settings := map[string]any{"delay": "100us", "jitter": "50us", "stall": "1ms", "stall_every": 1e6, "bandwidth": 1e9}
	p, _ := start(t, "chaos-tcp", settings)
	tr := p.Transport()
	if c := tr.Capabilities(); c.Reach != transports.ReachNetwork || c.Has(transports.FeatureIPChannelIfAsked) {
		t.Errorf("capabilities %+v", c)
	}
	some := []string{"first-bytes", "random-sizes", "duplex", "back-pressure", "readable", "half-close", "send-after-end", "peer-gone"}
	for _, c := range transporttest.Cases() {
		if slices.Contains(some, c.Name) {
			t.Run(c.Name, func(t *testing.T) {
				c.Run(t, transporttest.Harness{Transport: tr, Listen: transports.ListenSpec{Host: "127.0.0.1"}})
			})
		}
	}
}

func TestEachStartWarnsTheOperator(t *testing.T) {
	p, seen := start(t, "chaos", map[string]any{"around": "unix", "delay": "2ms"})
	if err := p.Close(); err != nil { // after which all that it has logged is here
		t.Fatal(err)
	}
	const warning = "links over unix are disturbed on purpose (delay=2ms, seed=1): for tests and demonstrations only"
	if n := seen.count(warning); n != 1 {
		t.Errorf("%d warnings in:\n%s", n, &seen.text)
	}
}
