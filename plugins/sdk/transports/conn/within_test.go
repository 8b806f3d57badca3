package conn

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
)

func TestWithin(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		waits <- Within(ctx, a, func() error {
			_, err := a.Read(make([]byte, 1))
			return err
		})
	}()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read that the context has ended gives %v", err)
	}
	if err := Within(t.Context(), b, func() error { return nil }); err != nil {
		t.Errorf("a call that succeeds gives %v", err)
	}
}
