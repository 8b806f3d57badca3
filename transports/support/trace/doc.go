// Package trace shows the IMPI packets that pass through links: as one line of text each,
// or as a pcapng file for Wireshark (docs/tracing.md). It wraps any link, and changes neither the
// bytes nor how they are divided into calls.
//
// If a direction stops being IMPI, or never was, that is reported once, and the direction
// is ignored from then on.
package trace
