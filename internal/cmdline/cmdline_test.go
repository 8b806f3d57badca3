package cmdline

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestFirstWord(t *testing.T) {
	for line, want := range map[string][2]bool{
		"": {}, "-n 4 help": {}, "helper": {}, "-v": {},
		"help": {true, false}, "-h": {true, false}, "-help x": {true, false}, "--help": {true, false},
		"version": {false, true}, "-version": {false, true}, "--version -h": {false, true},
	} {
		args := strings.Fields(line)
		if got := [2]bool{WantsHelp(args), WantsVersion(args)}; got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestMixed(t *testing.T) {
	for line, want := range map[string]string{"": "[] false", "a -x b": "[a b] true", "-x a": "[a] true", "a b -x": "[a b] true", "a -y": ""} {
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		x := f.Bool("x", false, "")
		rest, err := ParseMixed(f, strings.Fields(line))
		if got := fmt.Sprint(rest, *x); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q: %s, %v; want %s", line, got, err, want)
		}
	}
}
