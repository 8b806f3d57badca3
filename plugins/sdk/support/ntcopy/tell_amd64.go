//go:build !race

package ntcopy

// Tell stores a value for other cores, which then also see everything that was stored before. This
// core does not wait until they do, as it does in a store of package atomic; what it loads next may
// be from before.
//
//go:noescape
func Tell(word *uint64, value uint64)
