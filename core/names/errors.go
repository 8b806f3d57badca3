package names

import "errors"

// Reasons why a request is refused.
var (
	// ErrPublished means that the service is published already.
	ErrPublished = errors.New("the service is published already")
	// ErrUnknown means that there is no such service, or that another job has published it.
	ErrUnknown = errors.New("this job has published no such service")
	// ErrNotFound means that no such service is published.
	ErrNotFound = errors.New("no such service is published")
	// ErrFull means that there are too many names.
	ErrFull = errors.New("the server for names has no room")
	// ErrName means that a name, or a port, is malformed and cannot be published.
	ErrName = errors.New("malformed name")
	// ErrScope means a scope that is not valid.
	ErrScope = errors.New("bad scope")
)
