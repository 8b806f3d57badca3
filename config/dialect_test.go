package config

import (
	"reflect"
	"testing"
)

// TestDialects: what the file of a job with old peers can say, and what follows from it.
func TestDialects(t *testing.T) {
	j, diags := loadText(t, `job { embedded_server {} }
program { command = ["bin/prog"] }
protocol { dialect = "draft-1999" }
site "a" {
  client = 0
  host { address = "127.0.0.1"  procs = 1 }
  protocol { ipv4 = "mapped"  omit = ["C_TAGUB", "H_ACKMARK", "H_HIWATER"] }
}
site "b" {
  client = 1
  host { address = "127.0.0.2"  procs = 1 }
  protocol { versions = ["0.0", "0.7", "2.0"] }
}`)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	a, b := j.Sites[0], j.Sites[1]
	if a.Protocol.Dialect != Draft1999 || b.Protocol.Dialect != Draft1999 || a.Protocol.IPv4 != IPv4Mapped || b.Protocol.IPv4 != IPv4Compatible {
		t.Errorf("%+v and %+v", a.Protocol, b.Protocol)
	}
	if want := (Labels{Omit: []string{"C_TAGUB", "H_ACKMARK", "H_HIWATER"}, Versions: []Version{{}}}); !reflect.DeepEqual(a.Labels, want) || a.Labels.Own() {
		t.Errorf("%+v, want %+v", a.Labels, want)
	}
	if want := []Version{{}, {0, 7}, {2, 0}}; !reflect.DeepEqual(b.Labels.Versions, want) {
		t.Errorf("%v, want %v", b.Labels.Versions, want)
	}
}

// TestVersionsOfOurs: a site without a list of versions announces impi's own, one whose list
// lacks that does not.
func TestVersionsOfOurs(t *testing.T) {
	for text, own := range map[string]bool{
		"":                                     true,
		`versions = ["0.0"]`:                   false,
		`versions = ["0.0", "1.0"]`:            false,
		`versions = ["0.0", "0.65537", "1.0"]`: true,
	} {
		j, diags := loadText(t, `site "local" { client = 0  embedded_server {} }
host { address = "127.0.0.1"  procs = 1 }
program { command = ["bin/prog"] }
protocol { `+text+` }`)
		if len(diags) > 0 || j.Sites[0].Labels.Own() != own {
			t.Errorf("%q: own is %v, %v", text, !own, diags)
		}
	}
}
