// Package conformance judges a transport plugin: its binary, its process and its
// links. It tries every rule of docs/plugin-protocol.md that can be seen from
// outside, then the contract of package transports (package transporttest) through
// the node's own client, once for each data plane that the plugin offers, and
// compares its speed with our tcp.
//
// The numbers of cases begin with P- for rules of the plugin's process and with T-
// for those of the transport and its links. A number is never given to another
// rule.
package conformance
