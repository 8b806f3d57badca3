//go:build !cgo || !linux

package pmix

// CanLoad reports whether this build of the program can load libpmix.
const CanLoad = false

func load() (library, error) {
	return nil, refuse("the program is built without cgo, which loading libpmix takes: build it with CGO_ENABLED=1 and a C compiler")
}
