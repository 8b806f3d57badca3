package main

import (
	_ "embed"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/change"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/doctor"
	"github.com/openimpi/impi/internal/firewall"
	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/launch/manifest"
	"github.com/openimpi/impi/internal/manual"
	"github.com/openimpi/impi/internal/native/trial"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/internal/ui"
)

// verb is a command of impi-node other than running a job.
type verb struct {
	name string
	help string // printed for "-h" after it; empty: the command prints its own
	does func(args []string, std streams) int

	hidden bool // only impi-node itself uses it
}

func verbs() []verb {
	return []verb{
		{name: "abi", help: abiHelp, does: showABI},
		{name: "cert", does: cert},
		{name: "completion", help: completionHelp, does: complete},
		{name: "doctor", help: doctor.Help, does: examine},
		{name: "drain", help: change.DrainHelp, does: func(args []string, std streams) int { return change.Drain(args, std.out, std.err) }},
		{name: "help", help: help, does: func(args []string, std streams) int { return printHelp(args, std.out, std.err) }},
		{name: hostVerb, does: func(_ []string, std streams) int { return runHost(std) }, hidden: true},
		{name: "links", help: linksHelp, does: showLinks},
		{name: "manifest", help: manifest.Help, does: printOf("manifest", manifest.Command)},
		{name: config.NativeName, help: trial.Help, does: func(args []string, std streams) int { return trial.Run(args, std.out, std.err) }},
		{name: "plugins", does: plugins},
		{name: "ports", help: firewall.Help, does: printOf("ports", firewall.Command)},
		{name: bootstrap.Verb, does: func(_ []string, std streams) int { return runManaged(std) }, hidden: true},
		{name: "reload", help: change.ReloadHelp, does: func(args []string, std streams) int { return change.Reload(args, std.out, std.err) }},
		{name: "report", help: jobreport.Help, does: func(args []string, std streams) int { return jobreport.Run(args, std.out, std.err) }},
		{name: "status", help: status.Help, does: func(args []string, std streams) int { return status.Run(args, std.out, std.err) }},
		{name: "top", help: status.TopHelp, does: func(args []string, std streams) int { return status.Top(args, os.Stdin, os.Stdout, std.err) }},
		{name: "ui", help: ui.Help, does: func(args []string, std streams) int { return ui.Run(args, std.out, std.err) }},
		{name: "validate", help: validateHelp, does: validate},
		{name: "version", help: help, does: func(_ []string, std streams) int { return showVersion(std.out) }},
	}
}

// printOf returns what runs a command that prints something of a job whose hosts are other machines.
func printOf(name string, command func(args []string, out io.Writer, load func(path string) *config.Job) error) func([]string, streams) int {
	return func(args []string, std streams) int {
		shown := false // what is wrong with the file
		err := command(args, std.out, func(path string) *config.Job {
			opt := loadOptions()
			opt.Local = func(netip.Addr) bool { return false }
			job, found := config.Load(path, opt)
			show(std.err, found)
			shown = job == nil
			return job
		})
		switch {
		case err == nil:
			return statusOK
		case !shown:
			complain(std.err, fmt.Errorf("%s: %w", name, err))
		}
		return statusUsage
	}
}

//go:embed help/completion.txt
var completionHelp string

// complete runs impi-node completion. With the word commands, which make install uses, it lists the commands.
func complete(args []string, std streams) int {
	commands := []manual.Command{{Name: "impi-node", Help: help}}
	for _, v := range verbs() {
		if text := topics[v.name]; !v.hidden && text != "" {
			commands = append(commands, manual.Command{Name: "impi-node " + v.name, Help: text})
		}
	}
	if len(args) == 1 && args[0] == "commands" {
		for _, c := range commands[1:] {
			fmt.Fprintln(std.out, strings.TrimPrefix(c.Name, "impi-node "))
		}
		return statusOK
	}
	if len(args) == 1 {
		if script, ok := manual.Complete(args[0], commands); ok {
			fmt.Fprint(std.out, script)
			return statusOK
		}
	}
	complain(std.err, fmt.Errorf("completion: give one shell: %s", strings.Join(manual.Shells, ", ")))
	return statusUsage
}

// examine runs impi-node doctor.
func examine(args []string, std streams) int {
	isLocal, err := local()
	if err != nil {
		complain(std.err, err)
		return statusUsage
	}
	return doctor.Run(args, std.out, std.err, doctor.Job{Local: isLocal, Load: func(path string) *config.Job {
		job, found := load(path, isLocal, nil, allPorts, "", true)
		show(std.err, found)
		if found.HasErrors() {
			return nil
		}
		return job
	}})
}

// meantBy maps words of other programs to the commands here.
var meantBy = map[string]string{
	"ps": "status", "list": "status", "show": "links",
	"check": "validate", "lint": "validate", "certs": "cert", "plugin": "plugins",
	"k8s": "manifest", "kubernetes": "manifest", "nomad": "manifest", "openmpi": "native", "mpich": "native",
}

// runVerb runs the command in the first argument. found is false if that is a flag.
func runVerb(args []string, std streams) (status int, found bool) {
	if len(args) == 0 {
		return 0, false
	}
	for _, v := range verbs() {
		if v.name != args[0] {
			continue
		}
		if v.help != "" && v.name != "help" && cmdline.WantsHelp(args[1:]) {
			fmt.Fprint(std.out, v.help)
			return statusOK, true
		}
		return v.does(args[1:], std), true
	}
	if cmdline.WantsVersion(args) {
		return showVersion(std.out), true
	}
	if strings.HasPrefix(args[0], "-") {
		return 0, false
	}
	fmt.Fprintf(std.err, "impi-node: %s\nTry: impi-node help\n", unknown(args[0]))
	return statusUsage, true
}

// unknown is the message for a first argument that is neither a command nor a flag. It
// suggests the most similar command.
func unknown(word string) string {
	if _, err := exec.LookPath(word); err == nil || strings.Contains(word, "/") {
		return fmt.Sprintf("say how many procs are to run %s, as in: impi-node -n 4 %[1]s", word)
	}
	if strings.HasSuffix(word, ".hcl") {
		return fmt.Sprintf("there is no command %q; to run a job file: impi-node -config %[1]s", word)
	}
	var known []string
	for _, v := range verbs() {
		if !v.hidden {
			known = append(known, v.name)
		}
	}
	if means, ok := meantBy[word]; ok && slices.Contains(known, means) {
		return fmt.Sprintf("there is no command %q; did you mean %q? (known here: %s)", word, means, strings.Join(known, ", "))
	}
	return fmt.Sprintf("there is no command %q; %s", word, config.Meant(word, known))
}
