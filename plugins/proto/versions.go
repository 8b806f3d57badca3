package proto

import "slices"

// Addition is what a version of the protocol brought. Where one side speaks an older
// version it is not there, and everything else is as ever.
type Addition struct {
	Version int
	Name    string // a word, for tables
	Without string // what is missed where it is not there: a clause for the operator
}

var additions = []Addition{
	{2, "health", "the transport cannot say that it works less well than it could"},
	{2, "protocols", "which versions of the protocol it speaks is not known"},
}

// Lacking lists what a side that speaks a version does not have, in the order in which
// it was added.
func Lacking(version int) []Addition {
	return slices.DeleteFunc(slices.Clone(additions), func(a Addition) bool { return a.Version <= version })
}

// Versions are those that are spoken here, the oldest first.
func Versions() (list []int) {
	for v := Oldest; v <= Version; v++ {
		list = append(list, v)
	}
	return list
}

// Common is the highest version that is spoken here and is in a list; 0: none is.
func Common(list []uint32) int {
	best := 0
	for _, v := range list {
		if v >= Oldest && v <= Version {
			best = max(best, int(v))
		}
	}
	return best
}
