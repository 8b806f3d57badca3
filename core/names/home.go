package names

import "fmt"

// ScopeOfJob is what procs call the scope that only their job sees.
const ScopeOfJob = "job"

// Home is where a site's names are kept unless a proc says otherwise.
type Home struct {
	Shared bool   // by a server that several jobs share; false: by the job's own
	Scope  string // there, where the proc gives none
}

// Of returns at which server a name is kept, and what the scope is called there. given is false if
// the proc says nothing about the scope. It fails with ErrScope.
func (h Home) Of(scope string, given bool) (shared bool, at string, err error) {
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
