// Package rendezvous moves the bytes of startup. Serve runs the server of a job on a
// listener, in cmd/impi-server or inside a node. Join takes a client through startup and
// then keeps its connection for as long as the job runs. core/startup decides what is sent
// and what is an error.
package rendezvous

import "time"

// linger is how long a side that closes waits until the other has read the last message and
// closes, too. Without it the kernel may drop the message.
const linger = 2 * time.Second
