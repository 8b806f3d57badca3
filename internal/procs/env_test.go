package procs

import (
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

func TestProcEnvironment(t *testing.T) {
	node := []string{"PATH=/bin", "HOME=/root", "IMPI_AUTH_KEY=7", "IMPI_TRANSPORT_PLUGIN=x", "IMPI_NODE_HANDOFF=3", "OMP=1", "IMPI_SITE=old", "IMPI_PROCS=9", "NAME_ONLY", "MYKEY=7", "NAMESKEY=8"}
	keys := keyVariables(&config.Job{Sites: []config.Site{{Auth: config.Auth{Variable: "MYKEY"}}, {Names: config.Names{Auth: config.Auth{Variable: "NAMESKEY"}}}}})
	got := procEnv(node, keys, map[string]string{"OMP": "4", "A": "", "IMPI_SITE_PROC": "99"}, "beta", 2, 7)
	want := []string{"PATH=/bin", "HOME=/root", "NAME_ONLY", "A=", "OMP=4", "IMPI_CONTROL_FD=3", "IMPI_PROCS=7", "IMPI_SITE=beta", "IMPI_SITE_PROC=2"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := procEnv(node, keys, nil, "beta", 2, 0); slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, "IMPI_PROCS=") }) {
		t.Errorf("a number of procs that is not known: %q", got)
	}
}
