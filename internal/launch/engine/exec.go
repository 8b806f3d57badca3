package engine

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// defaultAtOnce is how many local commands are under way at a time until their programs run.
const defaultAtOnce = 32

// Exec starts programs by a command of the site's, such as kubectl exec -i {name} --.
type Exec struct {
	// Command is what reaches a machine. {name}, {host} (its address) and {user} stand for those of
	// the machine. {command} stands for what is to be run there, in one word for a shell there to
	// read, as ssh wants it; where it does not stand that is added in words, as kubectl wants it.
	// The command passes its standard input on. Without a command all runs on this machine.
	Command []string

	Machines []Machine // what Allocation gives
	AtOnce   int       // how many are started at a time; 0: 32
}

// Allocation gives the machines that Exec was made with.
func (e Exec) Allocation(context.Context) ([]Machine, error) { return e.Machines, nil }

// Start is Engine.Start.
func (e Exec) Start(ctx context.Context, machines []Machine, c Command) (*Started, error) {
	conduits := make([]conduit, len(machines))
	for i, m := range machines {
		conduits[i] = conduit{args: e.args(m), serves: []int{i}, sweep: true, explain: explainExec}
	}
	return start(ctx, machines, c, conduits, atOnce(e.AtOnce))
}

func (e Exec) args(m Machine) []string {
	if len(e.Command) == 0 {
		return shell
	}
	places := strings.NewReplacer("{name}", m.Name, "{host}", m.At(), "{user}", m.User, "{command}", shellLine)
	args := make([]string, len(e.Command))
	for i, word := range e.Command {
		args[i] = places.Replace(word)
	}
	if slices.ContainsFunc(e.Command, func(word string) bool { return strings.Contains(word, "{command}") }) {
		return args
	}
	return append(args, shell...)
}

// explainExec knows what happens if standard input is not passed on: the shell reads nothing, and has
// nothing to do.
func explainExec(messages string) string {
	if messages == "" {
		return "the command ended before anything ran there, and has printed nothing. It has to pass its standard input on, as kubectl exec does with -i"
	}
	return ""
}

func atOnce(n int) int {
	if n > 0 {
		return n
	}
	return defaultAtOnce
}

// lookPath finds a local command.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s on this machine, by which it would be reached: install it, or put its folder into PATH", name)
	}
	return path, nil
}
