package interpreter

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

// The tags of commands and answers, as the tester has them.
const (
	tagCommand = 32001
	tagReply   = 32002
	maxCommand = 8192
)

// Main runs the program and returns its exit status.
func Main() int {
	if err := mpi.Init(); err != nil {
		fmt.Fprintln(os.Stderr, "interpreter:", err)
		return 1
	}
	in := &interpreter{comms: map[int]*mpi.Comm{0: mpi.World()}, requests: map[int]*request{}}
	if err := mpi.World().SetErrhandler(mpi.ErrorsReturn); err != nil {
		fmt.Fprintln(os.Stderr, "interpreter:", err)
		return 1
	}
	if err := mpi.BufferAttach(1 << 20); err != nil {
		fmt.Fprintln(os.Stderr, "interpreter:", err)
		return 1
	}
	if err := in.loop(); err != nil {
		fmt.Fprintln(os.Stderr, "interpreter:", err)
		return 1
	}
	return in.status
}

type interpreter struct {
	comms    map[int]*mpi.Comm
	requests map[int]*request
	ended    bool
	status   int
}

type request struct {
	mpi.Request
	buf  *buffer
	recv bool
}

func (in *interpreter) loop() error {
	w := mpi.World()
	buf := make([]byte, maxCommand)
	for !in.ended {
		st, err := w.Recv(bytesOf(buf), mpi.AnySource, tagCommand)
		if err != nil {
			return err
		}
		out := in.command(string(buf[:st.Bytes()]))
		if err := w.Send(bytesOf([]byte(out)), st.Source, tagReply); err != nil {
			return err
		}
	}
	return mpi.Finalize()
}

func bytesOf(b []byte) mpi.Buffer { return mpi.Typed(b, len(b), datatype.Basic(datatype.Byte)) }

// arguments are those of one command. The first that is missing or wrong is its error.
type arguments struct {
	values map[string]string
	err    error
}

func (a *arguments) fail(name string) {
	a.err = cmp.Or(a.err, fmt.Errorf("%s=%q", name, a.values[name]))
}

func (a *arguments) num(name string, otherwise int) int {
	s, ok := a.values[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		a.fail(name)
	}
	return n
}

// wild returns a number, or anything for "any".
func (a *arguments) wild(name string, anything int) int {
	if a.values[name] == "any" {
		return anything
	}
	return a.num(name, 0)
}

func (a *arguments) list(name string) (v []int) {
	for _, s := range strings.Split(a.values[name], ",") {
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			a.fail(name)
		}
		v = append(v, n)
	}
	return v
}

func (in *interpreter) comm(a *arguments, name string) *mpi.Comm {
	c := in.comms[a.num(name, 0)]
	if c == nil {
		a.fail(name)
		return mpi.World()
	}
	return c
}

func (a *arguments) buffer(n int) *buffer {
	name := cmp.Or(a.values["type"], "byte")
	b, err := newBuffer(name, n)
	if err != nil {
		a.err = cmp.Or(a.err, err)
		b = &buffer{element: elements["byte"]}
	}
	return b
}

func (a *arguments) outgoing(n int) *buffer {
	b := a.buffer(n)
	if a.values["op"] == "concat" {
		return b.fillPairs(int64(a.num("seed", 0)))
	}
	return b.fill(int64(a.num("seed", 0)))
}

var errUnknown = errors.New("no such command")

func (in *interpreter) command(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "error class=0 an empty command"
	}
	a := &arguments{values: map[string]string{}}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		a.values[name] = value
	}
	out, err := "", errUnknown
	for _, f := range []func(string, *arguments) (string, error){in.ordinary, in.pointToPoint, in.collective, in.communicator} {
		if out, err = f(words[0], a); !errors.Is(err, errUnknown) {
			break
		}
	}
	if err == nil {
		err = a.err
	}
	if err != nil {
		return fmt.Sprintf("error class=%d %v", mpi.ErrorClass(err), err)
	}
	return "ok" + out
}

func (in *interpreter) ordinary(word string, a *arguments) (string, error) {
	switch word {
	case "ping":
	case "finalize":
		in.ended = true
	case "exit":
		os.Exit(a.num("code", 0))
	case "abort":
		mpi.Abort(a.num("code", 1), "the tester says so")
	case "info":
		c := in.comm(a, "comm")
		tagUB, _, err := mpi.World().Attr(mpi.TagUB)
		return fmt.Sprintf(" rank=%d size=%d tagub=%v", c.Rank(), c.Size(), tagUB), err
	default:
		return "", errUnknown
	}
	return "", nil
}
