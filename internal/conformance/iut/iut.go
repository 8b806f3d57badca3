// Package iut starts the implementations of IMPI that impi-conform judges: implementations
// under test. Ours and LAM/MPI are known; any other is two command lines.
package iut

import (
	"context"
	"os/exec"
)

// Mechanisms of authentication; their bits in the mask of AUTH are 1<<mechanism.
const (
	AuthNone = 0
	AuthKey  = 1
)

// Needs is the part of an implementation that a case is played against.
type Needs string

// The parts.
const (
	Client  Needs = "client"  // it is one client of the job, with its hosts; its program may be any
	Server  Needs = "server"  // it is the server
	Program Needs = "program" // a client whose procs run our interpreter
)

// Auth is the authentication that a side supports.
type Auth struct {
	None bool
	Key  uint64 // 0: no key
}

// Mask returns the mechanisms that the side offers in AUTH (IMPI ch. 2, Authentication).
func (a Auth) Mask() (m uint32) {
	if a.None {
		m |= 1 << AuthNone
	}
	if a.Key != 0 {
		m |= 1 << AuthKey
	}
	return m
}

// ClientSpec describes how to start a client of the IUT.
type ClientSpec struct {
	Server  string // address:port
	Rank    int    // of the client
	Clients int    // of the job
	Auth    Auth
	Hosts   []HostSpec
	Dir     string // a directory of its own

	MaxLinear int32 // value that it should submit; 0: its default
}

// HostSpec is a host that a client of the IUT should have.
type HostSpec struct {
	Address string // address that it should advertise, and connect from
	Procs   int
}

// Procs returns the number of procs of all hosts.
func (s ClientSpec) Procs() (n int) {
	for _, h := range s.Hosts {
		n += h.Procs
	}
	return n
}

// ServerSpec describes how to start a server of the IUT.
type ServerSpec struct {
	Clients int
	Host    string // address to listen at
	Auth    Auth
	Dir     string
}

// Subject is the implementation under test.
type Subject interface {
	// Name and Version identify the implementation.
	Name() string
	Version() string

	// Has reports whether the implementation has a part to be tested. reason is why not.
	Has(n Needs) (ok bool, reason string)

	// Client returns the command that joins a job. Its procs run our interpreter.
	Client(ctx context.Context, s ClientSpec) (*exec.Cmd, error)

	// Hosts reports whether a client can have more than one host.
	Hosts() bool

	// Server returns the command that serves a job. The first line that the command prints is
	// address:port.
	Server(ctx context.Context, s ServerSpec) (*exec.Cmd, error)
}
