// Package sums adds vectors of numbers by instructions for several at a time, which Go's compiler
// does not use, where the processor is known to have them.
package sums

import "unsafe"

// Loop adds n elements of in to those of inout. Both are aligned for their elements and do not
// overlap.
type Loop func(in, inout unsafe.Pointer, n int)

// Floats returns the loop for floats of size bytes, nil if there is none.
func Floats(size int) Loop { return floats[size] }

// Integers returns the loop for integers of size bytes, signed or not, nil if there is none.
func Integers(size int) Loop { return integers[size] }
