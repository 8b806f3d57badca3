// Package host runs transport plugins for a node: it finds, verifies, launches
// and supervises their processes and presents each as a transports.Transport.
//
// The descriptors of a plugin's links come over the descriptor channel. A link whose
// socket or memory was handed over (data planes "fd" and "peer-shm") lives on when its
// plugin dies; one whose bytes the plugin passes on ("ring", "stream", "grpc") is
// broken. The plugin is started again for the next Dial or Listen, or at once when it
// had listeners, which are opened again where they were.
package host
