// Package area makes sites on this machine, each a network namespace, joined by a wide area
// network.
package area

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/wan"
	"github.com/openimpi/impi/internal/wan/tun"
)

// Options say how many sites an area has, and what the lines between them are like.
type Options struct {
	Sites int
	// Rails is the number of devices and addresses of each site, each with a line of its own to the
	// device of the same number at each other site; 0: one.
	Rails int
	// Shape returns the shape of the line from one site to another one. It must not be nil.
	Shape func(from, to int) wan.Shape
	Seed  uint64
	MTU   int // 0: that of Ethernet
}

// Area is a set of sites and the lines between them.
type Area struct {
	Sites []*netns.Machine // their Address is that of the first rail
	rails int
	net   *tun.Network
	ended chan error
}

var made atomic.Int32

// New makes an area, which is removed when the test is over. Site i has the addresses 10.78.0.i+1,
// 10.78.1.i+1 and so on, one for each rail. Without the rights for it the test is skipped, and nil
// is returned.
func New(t netns.TB, o Options) *Area {
	t.Helper()
	if err := tun.Usable(); err != nil {
		skips.NotRun(t, "there are no TUN devices, as "+err.Error(), tun.Remedy)
		return nil
	}
	a := &Area{Sites: netns.NewUnconnected(t, o.Sites), rails: max(1, o.Rails), ended: make(chan error, 1)}
	if len(a.Sites) == 0 {
		return nil
	}
	var ports []tun.Port
	for rail := range a.rails {
		for i, site := range a.Sites {
			ports = append(ports, tun.Port{
				Namespace: site.Name, Device: fmt.Sprintf("w%d-%d", os.Getpid(), made.Add(1)), Name: Device(rail),
				Address: netip.PrefixFrom(Address(i, rail), 24),
			})
			site.Address = Address(i, 0).String()
		}
	}
	var err error
	a.net, err = tun.New(ports, tun.Options{Seed: o.Seed, MTU: o.MTU, Shape: func(from, to int) wan.Shape {
		return o.Shape(from%o.Sites, to%o.Sites)
	}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { a.ended <- a.net.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-a.ended; err != nil {
			t.Fatalf("the wide area: %v", err)
		}
		a.net.Close()
	})
	return a
}

// Address returns the IPv4 address of a site on a rail, both counted from 0.
func Address(site, rail int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 78, byte(rail), byte(site + 1)})
}

// Device returns the name that the device of a rail has at each site.
func Device(rail int) string { return fmt.Sprintf("wan%d", rail) }

// Reshape changes the lines of all rails from one site to another one.
func (a *Area) Reshape(from, to int, shape wan.Shape) error {
	for rail := range a.rails {
		offset := rail * len(a.Sites)
		if err := a.net.Reshape(offset+from, offset+to, shape); err != nil {
			return err
		}
	}
	return nil
}

// Counts returns the counts of the IP packets from one site to another one on a rail.
func (a *Area) Counts(from, to, rail int) wan.Counts {
	return a.net.Counts(rail*len(a.Sites)+from, rail*len(a.Sites)+to)
}
