package asked

import (
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
		if got := [2]bool{Help(args), Version(args)}; got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
