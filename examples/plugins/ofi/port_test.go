package main

import "testing"

// A listener's port is outside of those from which the kernel dials, if enough are left.
func TestPortOutside(t *testing.T) {
	for _, c := range []struct{ from, to, least, most int }{
		{32768, 60999, firstPort, 32767}, {1024, 60000, 60001, 65535}, {1024, 65535, 0, 0},
	} {
		for range 1000 {
			if p := portOutside(c.from, c.to); p < c.least || p > c.most {
				t.Fatalf("%d for %d to %d", p, c.from, c.to)
			}
		}
	}
}
