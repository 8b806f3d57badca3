// Package worlds simulates several jobs that meet: programs in which worlds open
// ports, accept and connect, make communicators of those that come of it, talk on all
// of them, and part again. The procs run core/mpi as it ships, the nodes are those of
// package job. One seed decides everything.
//
// What is checked:
//
//   - a proc never gets a context ID twice, in whatever worlds it takes part (contexts);
//   - all members of a new communicator get the same context IDs and sizes, or all get
//     an error of one class, and messages come from whom and by what they were sent
//     (result);
//   - nobody waits for ever (liveness), and nothing fails without a cause (order);
//   - who has disconnected from everybody has nothing left of other worlds: no links,
//     ports, tables, requests or messages, and neither have the nodes (leak);
//   - where a world dies, the others go on: what they began with it ends with an error
//     that has a class (survivors).
package worlds
