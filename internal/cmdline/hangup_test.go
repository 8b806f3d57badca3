package cmdline

import "testing"

func TestTerminalOfAProcess(t *testing.T) {
	for stat, want := range map[string]bool{
		"7 (impi-node) S 1 7 7 0 -1 4194560":       false,
		"7 (impi-node) S 1 7 7 34816 7 4194560":    true,
		"7 (a) S 1 2 3 9 (b) S 1 7 7 0 -1 4194560": false,
		"7 (impi-node":        true,
		"":                    true,
		"7 (impi-node) S 1 7": true,
	} {
		if got := hasTerminal([]byte(stat)); got != want {
			t.Errorf("%q: %t", stat, got)
		}
	}
}
