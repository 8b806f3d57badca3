// Package host runs transport plugins for a node: it finds, verifies, launches
// and supervises their processes and presents each as a transports.Transport.
//
// The descriptors of a plugin's links come over the descriptor channel. If a link's socket
// or memory was handed over (data planes "fd" and "peer-shm") the link lives on when the
// plugin dies; if the plugin passes its bytes on ("ring", "stream", "grpc") it breaks. A
// dead plugin is started again at the next Dial or Listen, or at once if it had listeners,
// which are opened again at their addresses.
package host
