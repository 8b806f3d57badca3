package report

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// The progress of a part is a detail, what it passes on is not: a plugin's line has the
// plugin's level.
func TestQuiet(t *testing.T) {
	var out strings.Builder
	l := QuietLogger{hclog.New(&hclog.LoggerOptions{Name: "impi-node", Level: hclog.Info, Output: &out, DisableTime: true})}.Named("tcp")
	l.Info("progress")
	l.Log(hclog.Debug, "debug of a plugin")
	l.Log(hclog.Info, "info of a plugin")
	l.Warn("trouble")
	want := "[INFO]  impi-node.tcp: info of a plugin\n[WARN]  impi-node.tcp: trouble\n"
	if out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
