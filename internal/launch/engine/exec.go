package engine

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// defaultAtOnce is how many local commands may be starting programs at a time.
const defaultAtOnce = 32

// Exec starts programs by a command of the site's, such as kubectl exec -i {name} --.
type Exec struct {
	// Command is what reaches a machine. In it {host} (the address) and {user} are replaced by those
	// of the machine, and {name} by its name up to the first dot, which is what kubectl calls a pod
	// whose DNS name is NAME.SERVICE. {command} is replaced by what is to be run there, as one word
	// for a shell to parse, as ssh needs it; if there is no {command} it is appended as separate
	// words, as kubectl needs it. The command must pass its standard input on. Without a Command
	// everything runs on this machine.
	Command []string

	Machines []Machine // returned by Allocation
	AtOnce   int       // maximum number of starts at a time; 0: 32
}

// Allocation returns e.Machines, which the job file lists.
func (e Exec) Allocation(context.Context) ([]Machine, error) { return e.Machines, nil }

// Start implements Engine, with one command for each machine.
func (e Exec) Start(ctx context.Context, machines []Machine, c Command) (*Started, error) {
	commands := make([]remoteCommand, len(machines))
	for i, m := range machines {
		commands[i] = remoteCommand{args: e.args(m), serves: []int{i}, sweep: true, explain: explainExec}
	}
	return start(ctx, machines, c, commands, atOnce(e.AtOnce))
}

func (e Exec) args(m Machine) []string {
	if len(e.Command) == 0 {
		return shell
	}
	places := strings.NewReplacer("{name}", firstLabel(m.Name), "{host}", m.At(), "{user}", m.User, "{command}", shellLine)
	args := make([]string, len(e.Command))
	for i, word := range e.Command {
		args[i] = places.Replace(word)
	}
	if slices.ContainsFunc(e.Command, func(word string) bool { return strings.Contains(word, "{command}") }) {
		return args
	}
	return append(args, shell...)
}

// firstLabel returns a name up to its first dot, and an address as it is.
func firstLabel(name string) string {
	if _, err := netip.ParseAddr(name); err == nil {
		return name
	}
	first, _, _ := strings.Cut(name, ".")
	return first
}

// explainExec explains the failure of a command that does not pass standard input on, so that the
// shell reads nothing and has nothing to do.
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

func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s on this machine, by which it would be reached: install it, or put its folder into PATH", name)
	}
	return path, nil
}
