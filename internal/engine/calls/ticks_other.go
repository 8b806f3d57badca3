//go:build !amd64 && !arm64

package calls

func ticks() int64 { return 0 } // which nobody calls: counters has no name
