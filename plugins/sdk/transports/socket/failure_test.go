package socket_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func TestFailure(t *testing.T) {
	cases := []struct {
		err       error
		code      transports.Code
		retryable bool
	}{
		{syscall.ECONNREFUSED, transports.CodeRefused, true},
		{&os.SyscallError{Syscall: "connect", Err: syscall.ENETUNREACH}, transports.CodeUnreachable, true},
		{syscall.ENOENT, transports.CodeUnreachable, true},
		{syscall.EADDRNOTAVAIL, transports.CodeAddress, false},
		{syscall.EADDRINUSE, transports.CodeResource, true},
		{syscall.EMFILE, transports.CodeResource, true},
		{syscall.EAFNOSUPPORT, transports.CodeUnsupported, false},
		{syscall.ETIMEDOUT, transports.CodeTimeout, true},
		{context.DeadlineExceeded, transports.CodeTimeout, true},
		{context.Canceled, transports.CodeTimeout, true},
		{errors.New("strange"), transports.CodeInternal, false},
	}
	for _, c := range cases {
		e := socket.Failure("x", "dial", "there", fmt.Errorf("wrapped: %w", c.err))
		if e.Code != c.code || e.Retryable != c.retryable || e.Reason == "" {
			t.Errorf("%v becomes %+v, want code %s, retryable %t", c.err, e, c.code, c.retryable)
		}
		if !errors.Is(e, c.err) || !errors.Is(e, transports.ErrTransport) {
			t.Errorf("%v is not wrapped", c.err)
		}
	}
}

func TestWhole(t *testing.T) {
	of := transports.Setting{Name: "size", Type: transports.TypeNumber, Default: 7.0}
	for _, c := range []struct {
		given any
		want  int
		ok    bool
	}{
		{nil, 7, true}, {0.0, 0, true}, {100.0, 100, true},
		{-1.0, 0, false}, {101.0, 0, false}, {1.5, 0, false}, {"1", 0, false},
	} {
		settings := map[string]any{}
		if c.given != nil {
			settings["size"] = c.given
		}
		got, err := socket.Whole(settings, of, 0, 100)
		var fault *transports.SettingError
		if got != c.want || (err == nil) != c.ok || (err != nil && !errors.As(err, &fault)) {
			t.Errorf("%v gives %d, %v", c.given, got, err)
		}
	}
}
