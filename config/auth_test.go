package config

import (
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	for text, want := range map[string]uint64{
		"0":                    0,
		"42\n":                 42,
		" 0x2a ":               42,
		"0XFFffFFffFFffFFff":   1<<64 - 1,
		"18446744073709551615": 1<<64 - 1,
		"0042":                 42, // decimal, as LAM reads it
	} {
		if got, err := ParseKey(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                     "empty",
		"\n":                   "empty",
		"18446744073709551616": "more than 64 bits",
		"0x10000000000000000":  "more than 64 bits",
		"-1":                   "neither",
		"ff":                   "neither",
		"0x":                   "neither",
		"1 2":                  "neither",
		"1_000":                "neither",
		"0b1":                  "neither",
	} {
		if got, err := ParseKey(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// A key must not appear in a message.
func TestKeyIsNotQuoted(t *testing.T) {
	if _, err := ParseKey("hunter2"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestOpenKeyIsAWarning(t *testing.T) {
	privateKeys(t)
	j, diags := loadText(t, oneProgram+`site "a" { client = 0  embedded_server {}  auth "key" { file = "open.key" }`+hostA+`}`)
	if j == nil || len(diags) != 1 || diags[0].Severity != Warning || diags.Err() != nil {
		t.Fatal(diags)
	}
	if j.Sites[0].Auth.Key != 12345 {
		t.Errorf("%+v", j.Sites[0].Auth)
	}
}

func TestBothMechanisms(t *testing.T) {
	j, diags := loadText(t, oneProgram+`site "a" { client = 0  embedded_server {}  auth "none" {}  auth "key" { env = "JOB_KEY" }`+hostA+`}`)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if j.Sites[0].Auth != (Auth{None: true, Keyed: true, Key: 0xc0ffee, Variable: "JOB_KEY"}) {
		t.Errorf("%+v", j.Sites[0].Auth)
	}
}

// TestOpenServerIsWarnedOf: auth "none" is fine on this machine only.
func TestOpenServerIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		listen, auth string
		warned       bool
	}{
		{"192.0.2.7:7800", `auth "none" {}`, true},
		{"192.0.2.7:7800", `auth "key" { env = "JOB_KEY" }` + "\n" + `auth "none" {}`, true},
		{"127.0.0.2:7800", `auth "none" {}`, false},
		{"192.0.2.7:7800", `auth "key" { env = "JOB_KEY" }`, false},
	} {
		j, diags := loadText(t, oneProgram+"site \"a\" {\nclient = 0\n"+hostA+"\nembedded_server { listen = \""+c.listen+"\" }\n"+c.auth+"\n}")
		warned := false
		for _, d := range diags {
			warned = warned || d.Severity == Warning && strings.Contains(d.Problem, "anybody who reaches it can join")
		}
		if j == nil || warned != c.warned || len(diags) > 1 {
			t.Errorf("%s with %s: %v", c.listen, c.auth, diags)
		}
	}
}
