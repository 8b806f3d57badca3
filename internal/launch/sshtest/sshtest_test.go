package sshtest

import (
	"testing"

	"github.com/openimpi/impi/internal/launch/daemons"
)

func TestHostsLetTheUserIn(t *testing.T) {
	h := Start(t, 2)
	for _, host := range h.Names {
		out := daemons.Run(t, nil, "ssh", "-F", h.Config, "-o", "BatchMode=yes", host, "id -un; id -u")
		if out != User+"\n64999\n" {
			t.Errorf("on %s one is %q, not %s", host, out, User)
		}
	}
}
