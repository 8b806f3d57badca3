package peers

import (
	"context"
	"strings"
	"testing"
)

// Who waits for output wakes when it is there, and also if there will be no more.
func TestUntil(t *testing.T) {
	o := &Output{}
	got := make(chan bool)
	has := func(s string) bool { return strings.Contains(s, "b") }
	go func() { got <- o.Until(t.Context(), has) }()
	_, _ = o.Write([]byte("a"))
	_, _ = o.Write([]byte("b"))
	if !<-got {
		t.Error("it is there")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if !o.Until(ended, has) || o.Until(ended, func(string) bool { return false }) {
		t.Error("what is there does not go by itself")
	}
}
