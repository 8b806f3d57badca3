// Package node is the agent process of a site: it finds the job's other sites through the server,
// starts the site's transport plugins and procs, connects its hosts with all others, switches their
// packets, makes direct links between procs, and ends everything when the job ends. Each of the
// rooms beside it (internal/site, procs, connmgr, ...) does one of these things; this package calls
// them in the order of a job's life.
//
// A node is one operating-system process and has, for each host of its site, a packet
// switch (internal/packetswitch): one goroutine that reads, routes and writes packets. Links are
// made in other goroutines, which give them to the switch.
//
// Spawned procs are a job of their own, for which another node runs in the same process. It uses
// the output and the transports of the site's own node (spawn_node.go).
//
// What ends a job early is an ending.Failure. All parts of a node report theirs to one
// ending.Ending, which picks the one that explains the others; the node tells the other
// sites through the server, and Run tears the site down.
package node
