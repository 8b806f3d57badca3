//go:build amd64 || arm64

package poll

// Pause hints to the processor that the caller polls memory until another processor writes to it.
// Without the hint, loads that the processor makes ahead delay the very store that is waited for:
// on two cores of a Xeon a line comes a third later.
func Pause()
