package datatype

import "fmt"

// ParseRepresentation is the inverse of String. Empty means Native.
func ParseRepresentation(name string) (Representation, error) {
	if name == "" {
		return Native, nil
	}
	for r, n := range representationNames {
		if n == name {
			return Representation(r), nil
		}
	}
	return Native, fmt.Errorf("datatype: %w: %q, want one of %q", ErrRepresentation, name, representationNames[:])
}
