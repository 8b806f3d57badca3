package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// SSH starts programs by OpenSSH. It never asks for a password and accepts no unknown host keys, so
// all keys must be in place.
type SSH struct {
	Program  string    // "": ssh
	Options  []string  // added to ssh's command line before its own; of an option given twice the first counts
	Machines []Machine // returned by Allocation: see ReadHostFile and ParseHosts
	AtOnce   int       // maximum number of starts at a time; 0: 32
}

// sshOptions are SSH's own options. A machine from which nothing is heard for nine seconds is lost.
var sshOptions = []string{
	"-T", "-x",
	"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=3", "-o", "ServerAliveCountMax=3",
	"-o", "ClearAllForwardings=yes", "-o", "LogLevel=ERROR",
}

// Allocation returns e.Machines, which the job file or a hostfile lists.
func (e SSH) Allocation(context.Context) ([]Machine, error) { return e.Machines, nil }

// Start implements Engine, with one ssh for each machine.
func (e SSH) Start(ctx context.Context, machines []Machine, c Command) (*Started, error) {
	program := cmp.Or(e.Program, "ssh")
	commands := make([]remoteCommand, len(machines))
	for i, m := range machines {
		target := m.At()
		if strings.HasPrefix(target, "-") || strings.HasPrefix(m.User, "-") {
			return nil, fmt.Errorf("%q would be an option of ssh, not a machine", target)
		}
		args := append(append([]string{program}, e.Options...), sshOptions...)
		if m.User != "" {
			args = append(args, "-l", m.User)
		}
		commands[i] = remoteCommand{
			args: append(args, "--", target, shellLine), serves: []int{i}, sweep: true,
			explain: func(messages string) string { return explainSSH(messages, target) },
		}
	}
	return start(ctx, machines, c, commands, atOnce(e.AtOnce))
}

// sshTroubles are phrases in OpenSSH's messages, and what to tell the user. %s is the machine.
var sshTroubles = []struct{ words, meaning string }{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key is another one than before. If that is right, remove the old one by ssh-keygen -R %s, and log in once by hand"},
	{"Host key verification failed", "its host key is not known here. Compare it and log in once by hand (ssh %s), or add it to known_hosts by ssh-keyscan"},
	{"Permission denied", "it does not let us in: no key of ours is accepted there, and engines answer no questions for passwords. Install one by ssh-copy-id %s, or load one into ssh-agent"},
	{"Could not resolve hostname", "its name is not known here. Look for a typing error in the list of hosts, or give an address or a Host in ssh's config for %s"},
	{"Connection refused", "no ssh server listens there. Start sshd on %s, or name its port by the option Port"},
	{"timed out", "it does not answer. Look whether %s is up, and whether a firewall is between"},
	{"No route to host", "there is no way to it. Look whether %s is up, and in which network"},
	{"Bad configuration option", "ssh does not take our options: look at those that were set for it, and try ssh %s by hand"},
}

func explainSSH(messages, target string) string {
	for _, t := range sshTroubles {
		if strings.Contains(messages, t.words) {
			return fmt.Sprintf(t.meaning, target) + ". ssh has printed: " + messages
		}
	}
	return ""
}
