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

// Needs says which part of an implementation a case is played against.
type Needs string

// The parts.
const (
	Client  Needs = "client"  // it is one client of the job, with its hosts; its program may be any
	Server  Needs = "server"  // it is the server
	Program Needs = "program" // a client whose procs run our interpreter
)

// Auth is what a side can do to show that it belongs to the job.
type Auth struct {
	None bool
	Key  uint64 // 0: no key
}

// Mask is what it offers in AUTH (IMPI ch. 2, Authentication).
func (a Auth) Mask() (m uint32) {
	if a.None {
		m |= 1 << AuthNone
	}
	if a.Key != 0 {
		m |= 1 << AuthKey
	}
	return m
}

// ClientSpec says how a client of the IUT is to be started.
type ClientSpec struct {
	Server  string // address:port
	Rank    int    // of the client
	Clients int    // of the job
	Auth    Auth
	Hosts   []HostSpec
	Dir     string // a directory of its own

	MaxLinear int32 // that it should submit; 0: its default
}

// HostSpec is a host of that client.
type HostSpec struct {
	Address string // that it should advertise, and connect from
	Procs   int
}

// Procs counts those of all hosts.
func (s ClientSpec) Procs() (n int) {
	for _, h := range s.Hosts {
		n += h.Procs
	}
	return n
}

// ServerSpec says how a server of the IUT is to be started.
type ServerSpec struct {
	Clients int
	Host    string // address to listen at
	Auth    Auth
	Dir     string
}

// Subject is the implementation under test.
type Subject interface {
	// Name and Version say who it is.
	Name() string
	Version() string

	// Has tells whether there is such a part to be tested. reason says why not.
	Has(n Needs) (ok bool, reason string)

	// Client gives the command that joins a job. Its procs run our interpreter.
	Client(ctx context.Context, s ClientSpec) (*exec.Cmd, error)

	// Hosts tells whether a client can have more than one.
	Hosts() bool

	// Server gives the command that serves a job. The first line that it prints is
	// address:port.
	Server(ctx context.Context, s ServerSpec) (*exec.Cmd, error)
}
