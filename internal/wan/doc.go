// Package wan is a wide area network on one machine. A [Line] is one direction between two sites: a
// queue, a transmitter of a rate, and a wire with a delay, which may lose, double and reorder IP
// packets, or be out for a while. It is pure: time and entropy are arguments, so that what it does
// can be computed beforehand.
package wan
