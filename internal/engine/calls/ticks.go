//go:build amd64 || arm64

package calls

// ticks reads the CPU's counter.
//
//go:noescape
func ticks() int64
