package transcript

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// TestWaits: whoever waits goes on when the text has come, and not before, in pieces as well.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Writer
		seen := make(chan string, 3)
		go func() { seen <- fmt.Sprint("await ", w.Await("x", 2)) }()
		go func() { seen <- "line " + w.Line(t, "pid ") }()
		for _, piece := range []string{"x", "\nno pid 4\npi", "d 12", "3"} {
			fmt.Fprint(&w, piece)
			synctest.Wait()
			if len(seen) != 0 {
				t.Fatalf("after %q: %s", w.String(), <-seen)
			}
		}
		fmt.Fprint(&w, "\n")
		if got := <-seen; got != "line 123" {
			t.Error(got)
		}
		fmt.Fprint(&w, "x")
		if got := <-seen; got != "await true" {
			t.Error(got)
		}
		if n := w.Number(t, "pid "); n != 123 {
			t.Error(n)
		}
	})
}

// TestClose: nobody waits for what will never come.
func TestClose(t *testing.T) {
	var w Writer
	ended := make(chan bool)
	go func() { ended <- w.Await("never", 1) }()
	fmt.Fprint(&w, "once")
	w.Close()
	if <-ended || !w.Await("once", 1) || w.Await("once", 2) {
		t.Error("what was written counts after the end, and nothing else does")
	}
}
