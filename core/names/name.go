package names

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
)

// Limits of published names and ports, in bytes.
const (
	MaxScope   = 64
	MaxService = 255
	MaxPort    = 1023 // MPI_MAX_PORT_NAME, without C's terminator
)

// Name is the key under which a port is published. Names of different scopes are
// independent.
type Name struct{ Scope, Service string }

// Check returns an ErrName for a name or a port that cannot be published.
func (n Name) Check(port string) error {
	switch {
	case len(n.Scope) > MaxScope:
		return fmt.Errorf("%w: a scope of %d bytes, at most %d", ErrName, len(n.Scope), MaxScope)
	case n.Service == "" || len(n.Service) > MaxService:
		return fmt.Errorf("%w: a service's name of %d bytes, 1 to %d are possible", ErrName, len(n.Service), MaxService)
	case len(port) > MaxPort:
		return fmt.Errorf("%w: a port's name of %d bytes, at most %d", ErrName, len(port), MaxPort)
	case strings.ContainsRune(n.Scope+n.Service+port, 0):
		return fmt.Errorf("%w: a zero byte in a name", ErrName)
	}
	return nil
}

// String quotes the name, with its scope if it has one.
func (n Name) String() string {
	if n.Scope == "" {
		return fmt.Sprintf("%q", n.Service)
	}
	return fmt.Sprintf("%q in scope %q", n.Service, n.Scope)
}

// Compare orders names, by scope first.
func Compare(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Service, b.Service))
}

// Owner proves from which job a request comes. It is the same at all sites of a job, and no other
// job knows it.
type Owner [32]byte

// OwnerOf derives from the job's token the proof that a request comes from the job. It does
// not reveal the token.
func OwnerOf(token []byte) (o Owner) {
	h := hmac.New(sha256.New, token)
	h.Write([]byte("impi: names of the job"))
	copy(o[:], h.Sum(nil))
	return o
}
