// Package host runs transport plugins for a node: it finds, verifies, launches
// and supervises their processes and presents each as a transports.Transport.
//
// A plugin is in nobody's data path: the descriptors of its links come over the
// descriptor channel, and a link lives on when its plugin dies. The plugin is
// started again for the next Dial or Listen, or at once when it had listeners,
// which are opened again where they were.
package host
