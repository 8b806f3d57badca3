// Package rendezvous moves the bytes of startup: Serve runs the server of a job
// on a listener, alone in cmd/impi-server or inside a node, and Join takes a
// client through startup and then keeps its connection for as long as the job
// runs. What is said, and what is wrong, is decided in core/startup.
package rendezvous

import "time"

// linger is how long a closing side waits for the other to take the last words
// and close too. Without it the kernel may throw them away.
const linger = 2 * time.Second
