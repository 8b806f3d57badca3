// Package examples holds programs that run as they stand, each with a job file,
// and the tests that run them through impi-node.
package examples
