package node

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// A site whose address is in use, as when it is started twice, does not end the job for the
// others: it starts again when the address is free, and the job runs.
func TestSiteWhoseAddressIsInUseDoesNotDecline(t *testing.T) {
	for _, who := range []string{"the channels' listener", "the server"} {
		t.Run(who, func(t *testing.T) {
			job := testJob("ring", 1, 1)
			serveApart(t, job)
			ln, err := net.Listen("tcp", "127.0.0.3:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			first := startSites(t, job, job.Sites[:1])
			first[0].err.says("startup: connected", 0) // so that it would hear that the job is over
			mistaken := slices.Clone(job.Sites[1:])
			if who == "the server" {
				mistaken[0].Server.Embedded = true // its address is that of the job's server
			} else {
				mistaken[0].Hosts = []config.Host{{Address: netip.MustParseAddr("127.0.0.3"), Port: netip.MustParseAddrPort(ln.Addr().String()).Port(), Procs: 1}}
			}
			if f := end(startSites(t, job, mistaken))[0]; f == nil || !strings.Contains(f.Text, "address") || !strings.Contains(f.Text, "in use") {
				t.Errorf("the site whose address is in use: %v", f)
			}
			again := startSites(t, job, job.Sites[1:])
			if f := end(first)[0]; f != nil {
				t.Fatalf("the other site: %v", f)
			}
			wantNone(t, again)
		})
	}
}
