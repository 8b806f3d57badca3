package site

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/support/memory"
)

// The test binary is also a plugin.
func TestMain(m *testing.M) {
	if sdk.IsPlugin() {
		sdk.Serve(sdk.Options{Transport: memory.New(func() (a, b link.Link) { return linktest.Pair(1000) })})
	}
	os.Exit(m.Run())
}

// The log says that a plugin was replaced when it was, and why if it was not.
func TestReplaceIsLogged(t *testing.T) {
	p, err := host.Start(t.Context(), host.Config{Name: "memory", Builtin: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	var log bytes.Buffer
	s := &Site{Routes: &routes.Table{Site: &config.Site{Name: "alpha"}}, Log: hclog.New(&hclog.LoggerOptions{Output: &log})}
	before := p.Status().PID
	answer, err := s.replace(t.Context(), &links.PluginReload{Transport: "memory"}, []*host.Plugin{p})
	if err != nil || answer.After.PID == before || !strings.Contains(log.String(), "a plugin is replaced") {
		t.Errorf("%v, %+v\n%s", err, answer, &log)
	}
	log.Reset()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.replace(t.Context(), &links.PluginReload{Transport: "memory"}, []*host.Plugin{p}); err == nil {
		t.Error("a plugin that was closed is replaced")
	}
	if text := log.String(); strings.Contains(text, "is replaced") || !strings.Contains(text, "[WARN]  a plugin was to be replaced, and its process of before goes on") {
		t.Errorf("the log says: %s", text)
	}
}
