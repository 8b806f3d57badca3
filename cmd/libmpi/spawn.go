//go:build cgo && !386 && !arm

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/openimpi/impi/core/mpi"
)

const maxArguments = 1 << 16

// stringList returns the strings of a list that ends with a null pointer.
func stringList(p uintptr) ([]string, error) {
	if p == 0 {
		return nil, nil
	}
	var out []string
	for i := range maxArguments {
		at, err := result[uintptr]("argv", p+uintptr(i)*8)
		if err != nil {
			return nil, err
		}
		if *at == 0 {
			return out, nil
		}
		s, err := text("argv", *at, 1<<20)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return nil, fmt.Errorf("%w: argv has more than %d strings", mpi.ErrArg, maxArguments)
}

func command(path, argv uintptr, procs int32, info uintptr) (c mpi.Command, err error) {
	if c.Path, err = text("command", path, 1<<16); err != nil {
		return c, err
	}
	if c.Args, err = stringList(argv); err != nil {
		return c, err
	}
	c.Procs = int(procs)
	c.Info, err = infoOf(info)
	return c, err
}

// putCodes stores the error codes of the procs, unless the program ignores them.
func putCodes(p uintptr, codes []mpi.Class) {
	to, err := array[int32]("array_of_errcodes", p, len(codes))
	if err != nil {
		return
	}
	for i, c := range codes {
		to[i] = int32(c)
	}
}

// spawn starts procs of a program, which matters at the root.
func (c *commObject) spawn(root int, path, argv uintptr, procs int, info, codes uintptr) (*mpi.Comm, error) {
	var what mpi.Command
	if root == c.Rank() {
		var err error
		if what, err = command(path, argv, int32(procs), info); err != nil {
			return nil, err
		}
	}
	children, errs, err := c.Spawn(what, root)
	putCodes(codes, errs)
	return children, err
}

func (c *commObject) spawnMultiple(root, n int, paths, argvs, procs, is, codes uintptr) (*mpi.Comm, error) {
	var what []mpi.Command
	if root == c.Rank() {
		var err error
		if what, err = commands(n, paths, argvs, procs, is); err != nil {
			return nil, err
		}
	}
	children, errs, err := c.SpawnMultiple(what, root)
	putCodes(codes, errs)
	return children, err
}

func commands(n int, paths, argvs, procs, is uintptr) ([]mpi.Command, error) {
	names, err := touched[uintptr]("array_of_commands", paths, n)
	if err != nil {
		return nil, err
	}
	counts, err := touched[int32]("array_of_maxprocs", procs, n)
	if err != nil {
		return nil, err
	}
	hints, err := touched[uintptr]("array_of_info", is, n)
	if err != nil {
		return nil, err
	}
	args := make([]uintptr, len(names))
	if argvs != 0 {
		if args, err = array[uintptr]("array_of_argv", argvs, n); err != nil {
			return nil, err
		}
	}
	what := make([]mpi.Command, len(names))
	for i := range what {
		if what[i], err = command(names[i], args[i], counts[i], hints[i]); err != nil {
			return nil, fmt.Errorf("program %d: %w", i, err)
		}
	}
	return what, nil
}

func (c *commObject) join(fd int) (*mpi.Comm, error) {
	mine, err := mpi.OpenPort(nil)
	if err != nil {
		return nil, err
	}
	theirs, err := swapPorts(fd, mine)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: argument fd: %w", mpi.ErrArg, err), mpi.ClosePort(mine))
	}
	var joined *mpi.Comm
	if mine < theirs { // one accepts, the other connects
		joined, err = c.Accept(mine, nil, 0)
	} else {
		joined, err = c.Connect(theirs, nil, 0)
	}
	return joined, errors.Join(err, mpi.ClosePort(mine))
}

// swapPorts exchanges the names of ports over a socket in blocking mode, in as many
// bytes as names can have.
func swapPorts(fd int, mine string) (theirs string, err error) {
	var out, in [maxPortName]byte
	copy(out[:], mine)
	for n := 0; n < len(out); {
		k, err := syscall.Write(fd, out[n:])
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return "", err
		}
		n += max(k, 0)
	}
	for n := 0; n < len(in); {
		k, err := syscall.Read(fd, in[n:])
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return "", err
		}
		if k == 0 {
			return "", io.ErrUnexpectedEOF
		}
		n += max(k, 0)
	}
	return string(bytes.TrimRight(in[:], "\x00")), nil
}
