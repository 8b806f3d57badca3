package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

func configured(t testing.TB, given map[string]any) *transport {
	t.Helper()
	x := newTransport()
	all := transports.Defaults(x.Schema())
	for k, v := range given {
		all[k] = v
	}
	if err := x.Configure(all); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func here(t testing.TB) transports.ListenSpec {
	return transports.ListenSpec{Host: "127.0.0.1", Dir: t.TempDir(), Name: "test"}
}

// The providers that need no hardware.
func TestContract(t *testing.T) {
	for _, provider := range []string{"tcp", "shm", "udp;ofi_rxd"} {
		for _, rdma := range []bool{false, true} {
			t.Run(provider+" rdma "+strconv.FormatBool(rdma), func(t *testing.T) {
				transporttest.Run(t, func(t *testing.T) transporttest.Harness {
					set := map[string]any{"provider": provider, "rdma": rdma}
					return transporttest.Harness{Transport: configured(t, set), Dialler: configured(t, set), Listen: here(t)}
				})
			})
		}
	}
}

func dialFrom(t testing.TB, x *transport, address string) (link.Link, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := x.Dial(ctx, transports.DialSpec{Address: address})
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

func TestWhyADialFails(t *testing.T) {
	ln, err := configured(t, nil).Listen(t.Context(), here(t))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for what, c := range map[string]struct {
		address string
		code    transports.Code
	}{
		"no scheme":        {"127.0.0.1:1", transports.CodeAddress},
		"a name":           {"ofi://localhost:1/tcp;ofi_rxm", transports.CodeAddress},
		"no port":          {"ofi://127.0.0.1:0/tcp;ofi_rxm", transports.CodeAddress},
		"anywhere":         {"ofi://0.0.0.0:1/tcp;ofi_rxm", transports.CodeAddress},
		"no digits":        {"ofi:tcp;ofi_rxm/zz", transports.CodeAddress},
		"another provider": {strings.Replace(ln.Address(), "tcp;ofi_rxm", "verbs", 1), transports.CodeAddress},
		"no socket":        {"ofi:tcp;ofi_rxm/0a00", transports.CodeAddress},
		"a long address":   {"ofi:tcp;ofi_rxm/" + strings.Repeat("00", 1000), transports.CodeAddress},
		"nobody":           {"ofi://127.0.0.1:1/tcp;ofi_rxm", transports.CodeTimeout},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := dialFrom(t, configured(t, map[string]any{"timeout": 0.5}), c.address)
			var te *transports.Error
			if !errors.As(err, &te) || te.Code != c.code || te.Reason == "" {
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
}

func TestSettingsAreJudged(t *testing.T) {
	for name, wrong := range map[string]any{
		"provider": "no such", "domain": "a b", "interface": "none0", "window": 1000.0, "fragment": 70000.0,
		"timeout": 0.0, "silence": -1.0, "env": []string{"PATH=/"},
	} {
		x := newTransport()
		bad := transports.Defaults(x.Schema())
		bad[name] = wrong
		if err := x.Configure(bad); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s is not blamed: %v", name, err)
		}
	}
}

// Without hardware the refusal says what libfabric said, what there is, and what to do.
func TestProviderThatIsNotHere(t *testing.T) {
	x := newTransport()
	set := transports.Defaults(x.Schema())
	set["provider"] = "nosuch"
	err := x.Configure(set)
	for _, part := range []string{"provider: ", "fi_getinfo: ", "(-61)", "fi_info -p", "tcp;ofi_rxm", "shm"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing: %v", part, err)
		}
	}
	if x.set.provider != "tcp" {
		t.Errorf("faulty settings were taken: %+v", x.set)
	}
}
