// Package loopback gives tests ports that nobody else takes between the moment they are chosen and
// the moment they are used, and connections that say nothing.
package loopback

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// Address returns an address of this machine that only this process uses, from 127.64.0.0 to
// 127.127.255.255 by the process's number. Connections to it come from 127.0.0.1, so that a dialler
// cannot get connected with itself if nothing listens there yet.
func Address() netip.Addr {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, 64 | byte(pid>>16)&63, byte(pid >> 8), byte(pid)})
}

// The ports of Free are below those that the kernel gives to who asks for any: a program that
// listens at all addresses would get one of these, which is then taken at Address, too.
const firstPort, endPort = 10000, 32768

var tried atomic.Uint32

// Free returns a port of Address that nobody listens on, another one each time.
func Free() (netip.AddrPort, error) {
	for {
		at := netip.AddrPortFrom(Address(), uint16(firstPort+tried.Add(1)%(endPort-firstPort)))
		l, err := net.Listen("tcp", at.String())
		if err == nil {
			return at, l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return netip.AddrPort{}, err
		}
	}
}

// Unused is Free for a test: it returns an address where nothing listens.
func Unused(t testing.TB) string {
	t.Helper()
	at, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	return at.String()
}

// ConnectSilently makes n connections that send nothing until the test is over.
func ConnectSilently(t testing.TB, n int, address string) (conns []net.Conn) {
	t.Helper()
	for range n {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		conns = append(conns, nc)
	}
	return conns
}
