package config

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"
)

// two are built-in transports.
var two = []Builtin{{Name: "unix"}, {Name: "tcp"}, {Name: "quic", NeedsBlock: true}}

func TestDefault(t *testing.T) {
	j := Default(4, []string{"testdata/bin/prog", "-x"}, two)
	if !j.Complete || j.File != "" || len(j.Sites) != 1 {
		t.Fatalf("%+v", j)
	}
	s := j.Sites[0]
	want, err := filepath.Abs("testdata/bin/prog")
	if err != nil {
		t.Fatal(err)
	}
	if s.Procs() != 4 || s.Program.Path != want || s.Program.Dir != j.Dir || !s.Program.PrefixOutput {
		t.Errorf("%+v", s)
	}
	loopback := netip.MustParseAddrPort("127.0.0.1:0")
	if !s.Server.Embedded || s.Server.Clients != 1 || s.Server.Address != loopback || !s.Auth.Random {
		t.Errorf("%+v %+v", s.Server, s.Auth)
	}
	if !reflect.DeepEqual(s.RouteTo("local").Prefer, []string{"unix", "tcp"}) {
		t.Errorf("%+v", s.RouteTo("local"))
	}
}

// Default and a file that says nothing have the same values.
func TestDefaultIsWhatAnEmptyFileMeans(t *testing.T) {
	j, diags := loadText(t, `site "local" { client = 0  embedded_server {} }
host { address = "127.0.0.1"  procs = 4 }
program { command = ["bin/prog"] }`)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	d := Default(4, []string{"bin/prog"}, two)
	file, plain := j.Sites[0], d.Sites[0]
	if j.Limits != d.Limits || file.Protocol != plain.Protocol || file.Wait != plain.Wait || file.Log != plain.Log ||
		file.Auth != plain.Auth || !reflect.DeepEqual(file.Transports, plain.Transports) || !reflect.DeepEqual(file.RouteTo("x"), plain.RouteTo("x")) {
		t.Errorf("file %+v\ndefault %+v", file, plain)
	}
	if file.Server.Address != plain.Server.Address || file.Server.Timeout != plain.Server.Timeout || file.Program.Stdin != plain.Program.Stdin {
		t.Errorf("file %+v\ndefault %+v", file, plain)
	}
}

func TestDefaultWithoutSuchACommand(t *testing.T) {
	for _, command := range []string{"./no-such-program", "no-such-program-in-path"} {
		if p := Default(1, []string{command}, nil).Sites[0].Program; p.Path != "" {
			t.Errorf("%s is at %s", command, p.Path)
		}
	}
}

// TestUsualTransports: what shared memory does as well is preferred only if the file wants it.
func TestUsualTransports(t *testing.T) {
	builtins := []Builtin{{Name: "shm", Machine: true, Memory: true}, {Name: "unix", Machine: true}, {Name: "tcp"}}
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for more, want := range map[string][]string{
		"":                                     {"shm", "tcp"},
		`route "*" { resume = true }`:          {"shm", "tcp"},
		`route "*" { data_plane = ["fd"] }`:    {"shm", "unix", "tcp"},
		`transport "unix" {}`:                  {"shm", "unix", "tcp"},
		`route "*" { prefer = ["unix","shm"]}`: {"unix", "shm"},
	} {
		o := testOptions()
		o.Builtins = builtins
		j, diags := load(&faults{file: "testdata/job.hcl"}, []byte(`site "local" { client = 0  embedded_server {} }
host { address = "127.0.0.1"  procs = 1 }
program { command = ["bin/prog"] }
`+more), dir, o)
		if len(diags) > 0 {
			t.Fatal(more, diags)
		}
		if got := j.Sites[0].RouteTo("local").Prefer; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", more, got, want)
		}
	}
}
