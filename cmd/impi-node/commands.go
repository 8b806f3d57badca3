package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/change"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/doctor"
	"github.com/openimpi/impi/internal/firewall"
	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/launch/manifest"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/native/trial"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/internal/ui"
	"github.com/openimpi/impi/plugins/host"
)

func tree(std streams) *cmdline.Command {
	o := &options{}
	root := &cmdline.Command{Name: "impi-node", Help: help, Flags: o.flags(), Program: true, Unknown: unknown}
	root.Check = o.complete
	root.Run = func([]string, io.Writer, io.Writer) (int, error) { return runJob(o, std), nil }
	root.Commands = []*cmdline.Command{
		abiCommand(),
		certCommand(),
		doctor.Command(known(), examined),
		change.DrainCommand(),
		linksCommand(),
		manifest.Command(loadElsewhere(std)),
		trial.Command(),
		pluginsCommand(std),
		firewall.Command(loadElsewhere(std)),
		change.ReloadCommand(),
		jobreport.Command(),
		status.Command(),
		status.TopCommand(os.Stdin, os.Stdout),
		ui.Command(),
		validateCommand(std),
		{Name: "version", Run: func(_ []string, out, _ io.Writer) (int, error) { return showVersion(out), nil }},
		{Name: hostVerb, Hidden: true, Run: func([]string, io.Writer, io.Writer) (int, error) { return runHost(std), nil }},
		{Name: bootstrap.Verb, Hidden: true, Run: func([]string, io.Writer, io.Writer) (int, error) { return runManaged(std), nil }},
	}
	root.AddCompletion(completionHelp, &cmdline.Command{Name: "jobs", Hidden: true, Run: listJobs})
	root.AddHelp(map[string]string{"exit": exitHelp, "files": filesHelp, "site": siteHelp})
	for _, c := range root.Commands {
		c.Also = meantBy[c.Name]
	}
	return root
}

// meantBy maps commands to the words that other programs have for them.
var meantBy = map[string][]string{
	"cert": {"certs"}, "links": {"show"},
	"manifest": {"k8s", "kubernetes", "nomad"}, "native": {"openmpi", "mpich"}, "plugins": {"plugin"}, "status": {"ps", "list"}, "validate": {"check", "lint"},
}

//go:embed help/completion.txt
var completionHelp string

func listJobs(_ []string, out, _ io.Writer) (int, error) {
	c := links.NewSelection()
	for _, j := range links.Merge(links.Survey(context.Background(), host.RunDirs(c.RunDir, c.UID), c.Deadline, links.Request{Here: true})) {
		fmt.Fprintln(out, j.Name)
	}
	return statusOK, nil
}

func loadElsewhere(std streams) func(path string) *config.Job {
	return func(path string) *config.Job {
		opt := loadOptions()
		opt.Local = func(netip.Addr) bool { return false }
		job, found := config.Load(path, opt)
		show(std.err, found)
		return job
	}
}

func examined() (doctor.Job, error) {
	isLocal, err := local()
	return doctor.Job{Local: isLocal, Load: func(path string) (*config.Job, config.Diagnostics) {
		return load(context.Background(), path, isLocal, nil, allPorts, "", true)
	}}, err
}

// unknown returns what to do instead if the first argument is neither a command nor a flag, or ""
// if it looks mistyped.
func unknown(word string) string {
	if _, err := exec.LookPath(word); err == nil || strings.Contains(word, "/") {
		return fmt.Sprintf("say how many procs are to run %s, as in: impi-node -n 4 %[1]s", word)
	}
	if strings.HasSuffix(word, ".hcl") {
		return fmt.Sprintf("there is no command %q; to run a job file: impi-node -config %[1]s", word)
	}
	return ""
}
