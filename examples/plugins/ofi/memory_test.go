package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// resident is what this process has in memory, in bytes; Go's own runtime does not count what C
// has.
func resident(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// An endpoint that was closed gives back what it and libfabric have taken.
func TestClosedListenersLeaveNoMemory(t *testing.T) {
	x := configured(t, nil)
	round := func() {
		for range 20 {
			ln, err := x.Listen(t.Context(), here(t))
			if err != nil {
				t.Fatal(err)
			}
			l, err := dialFrom(t, x, ln.Address())
			if err != nil {
				t.Fatal(err)
			}
			far, err := ln.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			far.Close()
			ln.Close()
		}
	}
	round()
	before := resident(t)
	for range 3 {
		round()
	}

	if after := resident(t); after > before+32<<20 {
		t.Errorf("%d bytes before and %d after 60 listeners more", before, after)
	}
}
