package unix

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	sys "golang.org/x/sys/unix"
)

// maxPath is the longest path that fits into a socket address: sun_path has 108
// bytes, the last of which is zero.
const maxPath = 107

// place is where a socket is: a file, or a name in the kernel's abstract space.
type place struct {
	path     string // absolute path
	abstract string // name without the leading @
}

var errPlace = errors.New(`it should be an absolute path or "@" and an abstract name`)

func parsePlace(address string) (place, error) {
	text, err := url.PathUnescape(address)
	switch {
	case err != nil || strings.ContainsRune(text, 0):
		return place{}, errPlace
	case strings.HasPrefix(text, "@") && len(text) > 1 && len(text) <= maxPath:
		return place{abstract: text[1:]}, nil
	case filepath.IsAbs(text) && filepath.Clean(text) != "/" && len(text) < sys.PathMax:
		return place{path: filepath.Clean(text)}, nil
	}
	return place{}, errPlace
}

// String returns the address, printable and without spaces even if the path is not.
func (p place) String() string {
	if p.path == "" {
		return "@" + url.PathEscape(p.abstract)
	}
	return (&url.URL{Path: p.path}).EscapedPath()
}

// abstractPlace makes up an abstract name that nobody else has.
func abstractPlace(name string) place {
	return place{abstract: "impi-" + name + "-" + strings.ToLower(rand.Text())}
}

// reachable returns the address in a form that fits into a socket address, valid
// until release is called: a long path goes through a descriptor of its folder.
func (p place) reachable() (short string, release func(), err error) {
	if p.path == "" {
		return "@" + p.abstract, func() {}, nil
	}
	if len(p.path) <= maxPath {
		return p.path, func() {}, nil
	}
	dir, file := filepath.Split(p.path)
	fd, err := sys.Open(dir, sys.O_PATH|sys.O_DIRECTORY|sys.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open the folder %s: %w", dir, err)
	}
	short = fmt.Sprintf("/proc/self/fd/%d/%s", fd, file)
	if len(short) > maxPath {
		sys.Close(fd)
		return "", nil, fmt.Errorf("%w: the file name %s is too long for a socket: %d bytes, at most %d", sys.ENAMETOOLONG, file, len(file), maxPath-len(short)+len(file))
	}
	return short, func() { sys.Close(fd) }, nil
}
