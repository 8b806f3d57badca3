package tcp

import (
	"net"
	"net/netip"
	"strconv"
	"testing"
)

// TestOneFamily: who binds 0.0.0.0 is not reached by IPv6, for which the firewall may have no rule.
func TestOneFamily(t *testing.T) {
	for at, want := range map[netip.Addr]bool{netip.IPv4Unspecified(): false, netip.IPv6Unspecified(): true} {
		list, err := (&settings{}).openAll(t.Context(), []netip.Addr{at}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer list[0].Close()
		c, err := net.Dial("tcp6", net.JoinHostPort("::1", strconv.Itoa(list[0].Addr().(*net.TCPAddr).Port)))
		if err == nil {
			c.Close()
		}
		if (err == nil) != want {
			t.Errorf("bound to %v, by IPv6: %v", at, err)
		}
	}
}
