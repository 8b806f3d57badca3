package hostlist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	for list, want := range map[string]string{
		"n1":                         "n1",
		"127.0.0.[2-5]":              "127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5",
		"node[001-003,070],gpu[1-2]": "node001 node002 node003 node070 gpu1 gpu2",
		"n[08-11]":                   "n08 n09 n10 n11",
		"n[8-11]":                    "n8 n9 n10 n11",
		"n[01-1]":                    "n01",
		"r[1-2]n[1-2].x":             "r1n1.x r1n2.x r2n1.x r2n2.x",
		"[1-2]a":                     "1a 2a",
		" a , b[1] ":                 "a b1",
		"a,a":                        "a a",
		"::1,fe80::[1-2]":            "::1 fe80::1 fe80::2",
		"n[999999999999999999]":      "n999999999999999999",
	} {
		got, err := Expand(list, 100)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v; want %q", list, got, err, want)
		}
	}
}

func TestExpandFaults(t *testing.T) {
	for list, want := range map[string]string{
		"":                          "no host",
		"a,,b":                      "no host",
		"a,":                        "no host",
		"n[1-3":                     "not closed",
		"n1-3]":                     "not opened",
		"n[1-[2]]":                  "within brackets",
		"n[]":                       "neither a number",
		"n[a]":                      "neither a number",
		"n[1-]":                     "neither a number",
		"n[1-2-3]":                  "neither a number",
		"n[1-2:2]":                  "neither a number",
		"[::1]":                     "neither a number",
		"n[1234567890123456789]":    "neither a number",
		"n[5-2]":                    "backwards",
		"a b":                       "a blank",
		"n[1-101]":                  "more than 100 hosts",
		"n[0-999999999999999999]":   "more than 100 hosts",
		"n[1-11]m[1-10]":            "more than 100 hosts",
		"n[1-50],m[1-50],x":         "more than 100 hosts",
		strings.Repeat("n[0-9]", 1): "",
		strings.Repeat("[0-999999999999999999]", 40): "more than 100 hosts",
		"n[1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999]": "more than 100 hosts",
	} {
		got, err := Expand(list, 100)
		var fault *Error
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%q: %v", list, err)
			}
		case !errors.As(err, &fault) || !strings.Contains(fault.Problem, want) || fault.Remedy == "":
			t.Errorf("%q: %d hosts, %v; want %q", list, len(got), err, want)
		}
	}
	if got, err := Expand("n[1-10]m[1-10]", 100); err != nil || len(got) != 100 {
		t.Errorf("as many as may be: %d hosts, %v", len(got), err)
	}
}

func TestCompress(t *testing.T) {
	for hosts, want := range map[string]string{
		"":                            "",
		"a":                           "a",
		"n1":                          "n1",
		"n1 n2 n3 n5":                 "n[1-3,5]",
		"n001 n002 n070 gpu1 gpu2":    "n[001-002,070],gpu[1-2]",
		"n9 n10":                      "n[9-10]",
		"n09 n10":                     "n[09-10]",
		"n08 n9":                      "n[08,9]",
		"n1 n1":                       "n[1,1]",
		"n2 n1":                       "n[2,1]",
		"127.0.0.2 127.0.0.3":         "127.0.0.[2-3]",
		"r1n1.x r1n2.x r2n1.x":        "r1n[1-2].x,r2n1.x",
		"n999999999999999999 n1":      "n[999999999999999999,1]",
		"a b":                         "a,b",
		"n12345678901234567890123 n1": "n12345678901234567890123,n1",
	} {
		got := Compress(strings.Fields(hosts))
		if got != want {
			t.Errorf("%s: %s, want %s", hosts, got, want)
		}
	}
}

// What is expanded can be compressed and expanded again, and nothing gives more hosts than
// it may.
func FuzzExpand(f *testing.F) {
	for _, list := range []string{"127.0.0.[2-5]", "node[001-064,070],gpu[1-2]", "r[1-2]n[1-2].x", "n[08-11", "a,,b", "[0-999999999999999999][0-9]"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		const most = 200
		hosts, err := Expand(list, most)
		if err != nil {
			return
		}
		if len(hosts) == 0 || len(hosts) > most {
			t.Fatalf("%d hosts", len(hosts))
		}
		short := Compress(hosts)
		again, err := Expand(short, most)
		if err != nil || !slices.Equal(hosts, again) {
			t.Fatalf("%q became %q: %q, %v; want %q", list, short, again, err, hosts)
		}
	})
}

func ExampleCompress() {
	fmt.Println(Compress([]string{"n08", "n09", "n10", "gpu1"}))
	// Output: n[08-10],gpu1
}
