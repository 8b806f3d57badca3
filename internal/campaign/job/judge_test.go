package job

import (
	"strings"
	"testing"
)

func TestWrong(t *testing.T) {
	const good = "[0] ring: 4 ranks, 3 rounds: 12 hops, path 0, as it must be\n"
	for _, c := range []struct {
		o    Outcome
		want string // "": nothing is wrong
	}{
		{Outcome{Output: good}, ""},
		{Outcome{Output: "[0] ring: 4 ranks\n"}, "status 0 without a result"},
		{Outcome{Output: good, Left: []string{"process 7 (impi-node)"}}, "left behind: process 7"},
		{Outcome{Hung: true, Output: good}, "it hangs"},
		{Outcome{Status: 2, Output: good + "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n"}, "has crashed: panic: runtime error"},
		{Outcome{Status: 1, Output: "runtime: epollcreate failed with 24\nfatal error: runtime: netpollinit failed\nimpi-node: rank 2 on site beta exited with status 2\n"}, ""},
		{Outcome{Status: 125, Output: "2026-11-29T10:49:38.326Z [INFO]  impi-node: waiting for site beta (client 1): left=18s\nimpi-node: site beta: context deadline exceeded\n"}, "does not say why"},
		{Outcome{Status: 2, Output: "impi-node: exit status 1\n"}, "does not say why"},
		{Outcome{Status: 2}, "does not say why"},
		{Outcome{Status: 2, Output: "x/job.hcl: error: cannot read the job file: too many open files\n"}, ""},
		{Outcome{Status: 2, Output: "error: this machine's addresses: route ip+net: netlinkrib: cannot allocate memory\n"}, ""},
		{Outcome{Status: 125, Output: "impi-node: site beta: proc 0 of site beta: cannot start /bin/ring: cannot allocate memory\n"}, ""},
		{Outcome{Status: -1}, "ended by a signal"},
		{Outcome{Status: -1, Killed: true}, ""},
		{Outcome{Status: -1, Killed: true, Left: []string{"process 7 (ring)"}}, "left behind"},
	} {
		if got := c.o.Wrong(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v is %q, not %q", c.o, got, c.want)
		}
	}
}
