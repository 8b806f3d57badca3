package rendezvous

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestReleaseBeforeTheContextEnds: once released, the end of the context does
// not touch the connection, and releasing again does not wait for that.
func TestReleaseBeforeTheContextEnds(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	ctx, cancel := context.WithCancel(t.Context())
	release := (&Client{nc: near}).interruptBy(ctx)
	release()
	cancel()
	release()
	go far.Write([]byte("x"))
	if _, err := near.Read(make([]byte, 1)); err != nil {
		t.Errorf("the released connection: %v", err)
	}
}

// TestReleaseAfterTheContextEnded: what is set after release stays.
func TestReleaseAfterTheContextEnded(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	ctx, cancel := context.WithCancel(t.Context())
	release := (&Client{nc: near}).interruptBy(ctx)
	cancel()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the end of the context did not interrupt Read: %v", err)
	}
	release()
	near.SetDeadline(time.Time{})
	go far.Write([]byte("x"))
	if _, err := near.Read(make([]byte, 1)); err != nil {
		t.Errorf("the released connection: %v", err)
	}
}
