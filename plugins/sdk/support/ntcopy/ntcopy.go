// Package ntcopy copies into memory that another core reads next and this one does not, such as
// a ring or a board of several procs.
//
// A usual store first fetches the line that it changes, from the cache of whoever read it last,
// and leaves it in the cache of this core, from which the reader has to fetch it. Non-temporal
// stores do neither. Two cores that have their third-level cache in common pass 16 KiB on in 2.5 us
// by usual stores and in 2 us by these, two that have not in 9 us and in 2 us. Up to 4 KiB usual
// stores are as fast or faster (docs/decisions/0039-experiments-on-speed.md).
//
// For what is shorter, Claim and Fetch have lines fetched before they are needed
// (docs/decisions/0066-lines-are-fetched-early.md).
package ntcopy

// Least is the number of bytes from which on Copy uses non-temporal stores.
const Least = 6 << 10

// Copy copies as copy does. A thread that sees a later store of the caller also sees the bytes that
// Copy wrote. dst and src must not overlap.
func Copy(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n < Least {
		return copy(dst, src)
	}
	return far(dst[:n], src[:n])
}
