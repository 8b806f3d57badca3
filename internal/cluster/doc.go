// Package cluster connects the hosts of a site: each machine's impi-node with those below and above
// it in a tree, whose root is the head.
//
// Before the job begins every host reports its part; the head gathers the parts with [Host.Gather],
// and distributes the result with [Host.Start]. While the job runs, reports of failures and output
// go up the tree, the end of the job, signals and standard input go down, and any host can ask
// another a question, by way of the head. [core/membership.Member] decides who is there and who is
// lost; this package has the clock and the connections, which are gRPC behind a [rpc/auth.Server]
// with the job's secret.
//
// The contents of parts, jobs, reports, questions and answers are bytes here; only the owner of a
// Host interprets them.
package cluster
