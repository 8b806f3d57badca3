//go:build !amd64 && !arm64

package calls

func ticks() int64 { return 0 } // never called: counters has no name
