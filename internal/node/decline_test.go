package node

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
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
			first[0].err.Await("startup: connected", 1) // so that it would hear that the job is over
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

// A site that has no port left, which cannot be for being started twice, tells the others
// why it does not come: they would wait for it all of start.
func TestSiteWithoutAFreePortDeclines(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	taken := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	job := withTransport(testJob("ring", 1, 1), "tcp", func(site string) map[string]any {
		if site == "beta" {
			return map[string]any{"port_range": taken + "-" + taken}
		}
		return nil
	})
	serveApart(t, job)
	first := startSites(t, job, job.Sites[:1])
	first[0].err.Await("startup: connected", 1)
	for i, f := range end(append(first, startSites(t, job, job.Sites[1:])...)) {
		if f == nil || !strings.Contains(f.Text, "all ports of port_range are in use") {
			t.Errorf("site %d: %v", i, f)
		}
	}
}
