// Package pmitest is a program for tests of what speaks to process managers: what each process of a
// job does, and what all have to say then.
package pmitest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/pmi"
)

// AbortVariable in the environment makes the last process abort, with status 7.
const AbortVariable = "IMPI_TEST_PMI_ABORT"

// Conn is a connection to a process manager.
type Conn interface {
	Me() pmi.Identity
	Nodes() ([]int, error)
	Put(key, value string) error
	Fence() error
	Get(key string, rank int) (value string, found bool, err error)
	Abort(status int, message string) error
	Close() error
}

// Process runs a process of a job: each publishes data about itself for all others, twice, and a
// value of long bytes if that is not 0. It prints what it knows of itself.
func Process(c Conn, long int) error {
	me := c.Me()
	for round := range 2 {
		key := fmt.Sprintf("address-%d-%d", round, me.Rank)
		if err := errors.Join(c.Put(key, fmt.Sprintf("(x=%d,%d)", round, me.Rank)), c.Fence()); err != nil {
			return err
		}
		for rank := range me.Size {
			got, found, err := c.Get(fmt.Sprintf("address-%d-%d", round, rank), rank)
			if want := fmt.Sprintf("(x=%d,%d)", round, rank); err != nil || !found || got != want {
				return fmt.Errorf("rank %d has put %q, want %q: %w", rank, got, want, err)
			}
		}
	}
	for rank := range me.Size {
		if _, found, err := c.Get("nobody-has-put-this", rank); found || err != nil {
			return fmt.Errorf("what nobody has put is found: %v %w", found, err)
		}
	}
	if long := strings.Repeat("x", long); long != "" {
		if err := errors.Join(c.Put("long-"+strconv.Itoa(me.Rank), long), c.Fence()); err != nil {
			return err
		}
		other := (me.Rank + 1) % me.Size
		if got, _, err := c.Get("long-"+strconv.Itoa(other), other); err != nil || got != long {
			return fmt.Errorf("%d bytes have become %d: %w", len(long), len(got), err)
		}
	}
	nodes, err := c.Nodes()
	if err != nil {
		return err
	}
	if os.Getenv(AbortVariable) != "" {
		if me.Rank == me.Size-1 {
			return c.Abort(7, "this is a test")
		}
		select {} // until the process manager ends it
	}
	fmt.Fprintf(os.Stdout, "rank %d of %d nodes %v appnum %d\n", me.Rank, me.Size, nodes, me.AppNum)
	return c.Close()
}

// Want compares the lines that the processes have printed, in any order. Other lines of a process
// manager, such as a warning, are ignored.
func Want(tb testing.TB, out string, lines ...string) {
	tb.Helper()
	got := strings.Split(strings.TrimSpace(out), "\n")
	got = slices.DeleteFunc(got, func(line string) bool { return !strings.HasPrefix(line, "rank ") && !strings.HasPrefix(line, "FAULT") })
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		tb.Errorf("the processes printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}
