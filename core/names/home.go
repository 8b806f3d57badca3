package names

import "fmt"

// ScopeOfJob is the name of the scope that only the own job sees, for procs.
const ScopeOfJob = "job"

// DefaultScope is where a site's names are kept unless a proc sets a scope.
type DefaultScope struct {
	Shared bool   // kept by a server that several jobs share; false: by the job's own
	Scope  string // scope at that server if the proc gives none
}

// ScopeOf reports whether a name is kept at the server that several jobs share, and returns the
// scope there. given is false if the proc gives no scope. It fails with ErrScope.
func (h DefaultScope) ScopeOf(scope string, given bool) (shared bool, at string, err error) {
	switch {
	case len(scope) > MaxScope:
		return false, "", fmt.Errorf("%w: %d bytes, at most %d", ErrScope, len(scope), MaxScope)
	case !given:
		return h.Shared, h.Scope, nil
	case scope == ScopeOfJob:
		return false, "", nil
	}
	return h.Shared, scope, nil
}
