//go:build !amd64 && !arm64

package poll

// Pause hints to the processor that the caller polls memory; this processor needs no hint.
func Pause() {}
