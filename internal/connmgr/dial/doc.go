// Package dial makes links to other nodes, for whatever purpose: it dials the candidates that a
// dynamic.DialPlan names, has both nodes prove themselves by a greeting, and tells the operator
// where a link is not what the routes prefer.
package dial
