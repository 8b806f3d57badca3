package proto

import "slices"

// Addition is something that a version of the protocol has added. If one side speaks an
// older version, it is missing, and everything else is unchanged.
type Addition struct {
	Version int
	Name    string // a word, for tables
	Without string // what is missing without it: a clause for the operator
}

var additions = []Addition{
	{2, "health", "the transport cannot say that it works less well than it could"},
	{2, "protocols", "which versions of the protocol it speaks is not known"},
}

// Lacking returns the additions that a version does not have, oldest first.
func Lacking(version int) []Addition {
	return slices.DeleteFunc(slices.Clone(additions), func(a Addition) bool { return a.Version <= version })
}

// Versions returns the versions that this package speaks, oldest first.
func Versions() (list []int) {
	for v := Oldest; v <= Version; v++ {
		list = append(list, v)
	}
	return list
}

// Common returns the highest version in the list that this package speaks, or 0.
func Common(list []uint32) int {
	best := 0
	for _, v := range list {
		if v >= Oldest && v <= Version {
			best = max(best, int(v))
		}
	}
	return best
}
