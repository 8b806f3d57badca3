//go:build !amd64 && !arm64

package rights

// filter does nothing: nobody has looked at the numbers of this machine's system calls.
func filter(bool) (bool, error) { return false, nil }
