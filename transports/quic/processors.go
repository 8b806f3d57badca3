package quic

import (
	"os"
	"runtime"
)

// OwnProcess says that this process does nothing but serve the transport, as a plugin
// does. It then computes on half of the processors, rounded up: the procs at the
// other ends of its rings poll on the rest, and what Go's scheduler wakes in vain to
// look for work takes theirs. An operator's GOMAXPROCS stays.
func (t *Transport) OwnProcess() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(half(runtime.GOMAXPROCS(0)))
	}
}

func half(processors int) int { return (processors + 1) / 2 }
