// Package node is the agent process of a site: it finds the job's other sites
// through the server, starts the site's transport plugins and procs, connects
// its hosts with all others, switches their packets, makes direct links between
// procs, and ends everything when the job does, whichever way that is. It brings the
// packages below it together, in the order of a job's life; each of these does one of the
// above and none knows the node.
//
// A node is one operating-system process and has, for each host of its site, a packet
// switch (internal/packetswitch): one goroutine that reads, routes and writes packets and
// does nothing else. Everything slow happens in other goroutines, which give the
// switch finished links.
//
// Procs that are spawned are a job of their own, with a node of its own in the same
// process, which has the site's output and transports (spawn_node.go).
//
// What ends a job early is an ending.Failure. All parts of a node report theirs to one
// ending.Ending, which picks the one that explains the others; the node tells the other
// sites through the server, and Run tears the site down.
package node
