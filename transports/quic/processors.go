package quic

import (
	"os"
	"runtime"
)

// OwnProcess declares that this process only serves the transport, as a plugin does. The process
// then uses half of the processors, rounded up, unless the operator has set GOMAXPROCS: the procs
// at the other ends of its rings poll on the other half, and threads that Go's scheduler wakes to
// look for work would take these processors from them. See
// docs/decisions/0018-quic-takes-another-port.md.
func (t *Transport) OwnProcess() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(half(runtime.GOMAXPROCS(0)))
	}
}

func half(processors int) int { return (processors + 1) / 2 }
