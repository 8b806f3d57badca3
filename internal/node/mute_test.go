package node

import (
	"net"
	"testing"
)

// muteListener returns the address of somebody who accepts connections, in the
// kernel at least, and says nothing.
func muteListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
