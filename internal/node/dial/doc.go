// Package dial makes links to other nodes: it dials the ways that a dynamic.Search names, proves
// both nodes to each other by a greeting, and tells the operator where a link is not what the
// routes prefer. What a link is for is its users' business.
package dial
