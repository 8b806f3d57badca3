package mpi

import (
	"github.com/openimpi/impi/internal/engine/proc"
)

// GroupEmpty is the group without members. It cannot be freed: Free of it, which
// is right as many operations give it, does nothing.
var GroupEmpty = (*Group)(proc.GroupEmpty)
