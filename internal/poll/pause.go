//go:build amd64 || arm64

package poll

// Pause tells the processor that the caller looks at memory again and again
// until another processor writes to it. Loads that run far ahead of the program
// delay the very store that is waited for: measured on two cores of a Xeon, a
// line comes a third later without it.
func Pause()
