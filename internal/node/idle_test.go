package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/loopback"
)

// TestIdleConnectionsAtADirectListener: connections that do not greet do not keep a proc's
// link out, though they are from the same machine: neither where it arrives, nor where
// it is dialled.
func TestIdleConnectionsAtADirectListener(t *testing.T) {
	for _, n := range []int{70, 1000} {
		// Rank 0 of alpha, whose link it is when both dial, dials rank 1 of beta.
		for i, busy := range []string{"alpha", "beta"} {
			t.Run(fmt.Sprint(n, " at ", busy), func(t *testing.T) {
				job := route(testJob("ring", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true})
				serveApart(t, job)
				first := startSites(t, job, job.Sites[i:i+1])
				<-first[0].n.listening
				for _, l := range first[0].n.hosts[0].Direct {
					if l.Transport.Name == "tcp" {
						at, _, _ := strings.Cut(l.Address(), "/") // what follows is how many connections a link may have
						loopback.ConnectSilently(t, n, at)
					}
				}
				all := append(first, startSites(t, job, job.Sites[1-i:2-i])...)
				wantNone(t, all)
				if log := all[i].err.String(); !strings.Contains(log, "direct link: site=alpha rank=0 peer=1 transport=tcp") {
					t.Errorf("there was no direct link:\n%s", log)
				}
			})
		}
	}
}
