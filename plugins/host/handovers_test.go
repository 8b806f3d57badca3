package host

import (
	"testing"
	"time"
)

// TestStraysAreCounted: descriptors that nobody waits for are reported at once, and then counted.
func TestStraysAreCounted(t *testing.T) {
	var d handovers
	at := time.Now()
	if n := d.stray(at); n != 1 {
		t.Errorf("the first one: %d", n)
	}
	for range 100 {
		if n := d.stray(at.Add(tellStrays - 1)); n != 0 {
			t.Fatalf("soon after: %d", n)
		}
	}
	if n := d.stray(at.Add(tellStrays)); n != 101 {
		t.Errorf("later: %d", n)
	}
	if n := d.stray(at.Add(tellStrays)); n != 0 {
		t.Errorf("at once again: %d", n)
	}
}
