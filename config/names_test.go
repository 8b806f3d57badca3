package config

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNamesBlock(t *testing.T) {
	privateKeys(t)
	at := netip.MustParseAddrPort("192.0.2.9:7900")
	for _, tt := range []struct {
		text string
		want Names // except Pos
	}{
		{"", Names{}},
		{`names { server = "192.0.2.9:7900"  auth "none" {} }`, Names{Server: at, Auth: Auth{None: true}}},
		{`names { server = "192.0.2.9:7900"  scope = "chem"  auth "key" { env = "JOB_KEY" } }`,
			Names{Server: at, Scope: "chem", Auth: Auth{Keyed: true, Key: 0xc0ffee, Variable: "JOB_KEY"}}},
		{`names { server = "192.0.2.9:7900"  auth "key" { file = "open.key" } }`, Names{Server: at, Auth: Auth{Keyed: true, Key: 12345, File: "open.key"}}},
	} {
		job, diags := loadText(t, spawnSite+tt.text)
		if diags.Err() != nil {
			t.Fatalf("%s: %v", tt.text, diags)
		}
		got := job.Sites[0].Names
		if got.Pos.IsZero() != (tt.text == "") || got.Shared() != (tt.text != "") {
			t.Errorf("%s: %+v", tt.text, got)
		}
		if got.Pos = (Pos{}); got != tt.want {
			t.Errorf("%s: %+v", tt.text, got)
		}
	}
	job := mustLoad(t, "testdata/full.hcl")
	if a, b := mustSite(t, job, "alpha").Names, mustSite(t, job, "beta").Names; a.Scope != "chem" || b.Scope != "" || !b.Auth.None {
		t.Errorf("alpha has %+v, beta %+v", a, b)
	}
}

func TestNamesFaults(t *testing.T) {
	for text, want := range map[string]string{
		`names { auth "none" {} }`:                                                                      "names has no server",
		`names { server = "192.0.2.9:7900" }`:                                                           "names has no auth",
		`names { server = "192.0.2.9:7900"  auth "tls" {} }`:                                            `there is no authentication "tls"`,
		`names { server = "192.0.2.9:7900"  auth "key" {} }`:                                            "does not say where the key is",
		`names { server = "192.0.2.9:7900"  auth "none" { file = "x" } }`:                               "takes nothing",
		`names { server = "192.0.2.9"  auth "none" {} }`:                                                "has no port",
		`names { server = "192.0.2.9:7900"  scope = "job"  auth "none" {} }`:                            `"job" cannot be a scope`,
		`names { server = "192.0.2.9:7900"  auth "none" {}  scope = "` + strings.Repeat("s", 65) + `"}`: "cannot be a scope",
	} {
		_, diags := loadText(t, spawnSite+text)
		if len(diags) != 1 || !strings.Contains(diags[0].Problem, want) || diags[0].Pos.IsZero() {
			t.Errorf("%s: %v, want %q", text, diags, want)
		}
	}
}
