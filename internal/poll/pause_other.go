//go:build !amd64 && !arm64

package poll

// Pause tells some processors that the caller polls memory; this one needs no hint.
func Pause() {}
