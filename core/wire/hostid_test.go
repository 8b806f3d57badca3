package wire

import (
	"encoding/hex"
	"net/netip"
	"testing"
)

func TestHostIDForms(t *testing.T) {
	for _, c := range []struct {
		addr string
		form HostIDForm
		want string
		back string
	}{
		{"192.0.2.10", IPv4Compatible, "000000000000000000000000c000020a", "192.0.2.10"},
		{"192.0.2.10", IPv4Mapped, "00000000000000000000ffffc000020a", "192.0.2.10"},
		{"::ffff:192.0.2.10", IPv4Compatible, "000000000000000000000000c000020a", "192.0.2.10"},
		{"127.0.0.1", IPv4Compatible, "0000000000000000000000007f000001", "127.0.0.1"},
		{"127.0.0.3", IPv4Mapped, "00000000000000000000ffff7f000003", "127.0.0.3"},
		{"2001:db8::1", IPv4Mapped, "20010db8000000000000000000000001", "2001:db8::1"},
		{"::1", IPv4Compatible, "00000000000000000000000000000001", "::1"},
		{"::2:c000:20a", IPv4Compatible, "000000000000000000000002c000020a", "::2:c000:20a"},
	} {
		want, err := hex.DecodeString(c.want)
		if err != nil {
			t.Fatal(err)
		}
		h := HostIDFrom(netip.MustParseAddr(c.addr), c.form)
		if h != HostID(want) {
			t.Errorf("%s is %x, want %x", c.addr, h[:], want)
		}
		if h.String() != c.back {
			t.Errorf("%s comes back as %v", c.addr, h)
		}
	}
}

func TestHostIDNone(t *testing.T) {
	if (HostID{}).Addr().IsValid() || (HostID{}).String() != "none" {
		t.Error("zeros are no address")
	}
}

// TestProcIsOpaque: both embeddings of one address are two identities.
func TestProcIsOpaque(t *testing.T) {
	a := netip.MustParseAddr("192.0.2.10")
	p, q := Proc{HostIDFrom(a, IPv4Compatible), 1}, Proc{HostIDFrom(a, IPv4Mapped), 1}
	if p == q || p.String() != q.String() || p.String() != "192.0.2.10/1" {
		t.Errorf("%v and %v", p, q)
	}
}
