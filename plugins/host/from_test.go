package host

import (
	"context"
	"net/netip"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// A link that lives in the plugin says where it comes from, as one of which the node has the socket
// does.
func TestPeersOfLinksInPlugins(t *testing.T) {
	ca := pkitest.Authority(t)
	var sites [2]transports.Transport
	for i, name := range []string{"alpha", "beta"} {
		w := builtin("tcp", "")
		w.Settings = pkitest.Site(t, name, ca, ca, map[string]any{"tls": true})
		sites[i] = w.start(t).Transport()
	}
	ln, err := sites[0].Listen(soon(t), transports.ListenSpec{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := sites[1].Dial(soon(t), transports.DialSpec{Address: ln.Address(), From: "127.0.0.9"})
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, from, err := ln.(interface {
		AcceptFrom(context.Context) (link.Link, netip.Addr, error)
	}).AcceptFrom(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if from != netip.MustParseAddr("127.0.0.9") {
		t.Errorf("it comes from %v", from)
	}
}
