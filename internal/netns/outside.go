package netns

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// outside stands for a test where machines are made by a program that is none.
type outside struct{ cleanup []func() }

type impossible string

func (o *outside) Helper()                        {}
func (o *outside) Cleanup(f func())               { o.cleanup = append(o.cleanup, f) }
func (o *outside) Skip(why ...any)                { panic(impossible(fmt.Sprint(why...))) }
func (o *outside) Fatalf(format string, a ...any) { panic(impossible(fmt.Sprintf(format, a...))) }

// remove calls what cleans up, all of it, whatever of it fails.
func (o *outside) remove() {
	for _, f := range slices.Backward(o.cleanup) {
		_ = o.try(f) // the machines are gone, or as far gone as they will be
	}
}

// try calls f, and returns why it has ended the test, if it has.
func (o *outside) try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case impossible:
			err = fmt.Errorf("there are no machines: %s", string(r))
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// Outside has a program that is no test make machines, in f. It returns a function that removes
// them, or the reason why they cannot be made.
func Outside(f func(t TB)) (remove func(), err error) {
	o := &outside{}
	if err := o.try(func() { f(o) }); err != nil {
		o.remove()
		return nil, err
	}
	return o.remove, nil
}

// CommandOnEach returns a command that runs a program on each machine at the same time, and ends with
// the status of the first machine in the list whose program has failed, or 0. args returns the arguments
// for a machine. SIGTERM is passed on; then the command may end before the programs, with status 143.
func CommandOnEach(ctx context.Context, list []*Machine, program string, args func(i int) []string) *exec.Cmd {
	var b strings.Builder
	b.WriteString("trap 'kill $all 2>/dev/null' TERM\n")
	for i, x := range list {
		fmt.Fprintf(&b, "ip netns exec %s", x.Name)
		for _, word := range append([]string{program}, args(i)...) {
			fmt.Fprintf(&b, " '%s'", strings.ReplaceAll(word, "'", `'\''`))
		}
		b.WriteString(" & all=\"$all $!\"\n")
	}
	b.WriteString("status=0\nfor p in $all; do wait $p; s=$?; [ $status = 0 ] && status=$s; done\nexit $status\n")
	return exec.CommandContext(ctx, "bash", "-c", b.String())
}
