// Package cluster connects the hosts of a site: each machine's impi-node with those below
// and above it in a tree, whose root is the head.
//
// Before the job begins every host reports what it has, the head gathers that with
// [Host.Gather], and hands down what it made of it with [Host.Start]. While the job runs
// reports of failures go up, the end and signals go down, output goes up and standard input
// down, and any host can ask another a question, by way of the head.
// [core/membership.Member] decides who is there and who is lost; this package has the
// connections, which are gRPC behind a [rpc/door.Door] with the job's secret, and the clock.
//
// What the messages mean is for the owner of a Host to know: parts, jobs, reports, questions
// and answers are bytes here.
package cluster
