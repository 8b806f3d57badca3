package change

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/hostlist"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

// DrainHelp is the text of impi-node drain -h.
//
//go:embed drain.txt
var DrainHelp string

// statusInUse is the exit status if a plugin is still used when the time is over.
const statusInUse = 3

const lookAgain = 250 * time.Millisecond

type drainOptions struct {
	common
	transport string
	undrain   bool
	host      string
}

// DrainCommand returns impi-node drain.
func DrainCommand() *cmdline.Command {
	o := &drainOptions{}
	c := o.command("drain", DrainHelp)
	c.Args = cmdline.Host
	c.Flags.StringVar(&o.transport, "transport", "", "")
	c.Flags.BoolVar(&o.undrain, "undrain", false, "")
	c.Check = func(args []string) error {
		if err := cmdline.ExactArgs(1, "one host, by its address or name in the job file")(args); err != nil {
			return err
		}
		return o.check(nil)
	}
	c.Run = o.run
	return c
}

func (o *drainOptions) run(args []string, out, errs io.Writer) (int, error) {
	o.host = args[0]
	node, err := o.node()
	if err != nil {
		return statusFailed, err
	}
	op := links.OpDrain
	if o.undrain {
		op = links.OpUndrain
	}
	a, err := o.ask(node, op)
	if err == nil && !o.undrain {
		a, err = o.follow(node, a, out)
	}
	if err != nil {
		return statusFailed, fmt.Errorf("host %s: %w", o.host, err)
	}
	return o.conclude(a, out, errs)
}

func (o *drainOptions) node() (*links.FoundNode, error) {
	all := links.Survey(context.Background(), host.RunDirs(o.runDir, os.Geteuid()), surveyTime, links.Request{})
	found := slices.DeleteFunc(slices.Clone(all), func(f links.FoundNode) bool {
		return strings.Contains(f.About.Job, "/") || !links.IsCalled(o.job, f.About.Job, f.About.ID) || !isOf(&f, o.host)
	})
	switch len(found) {
	case 0:
		if err := o.elsewhere(all); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no running job that has a node here has a host %s; run the command on that host or another machine of its site, whose hosts impi-node links shows", o.host)
	case 1:
		return &found[0], nil
	}
	var names []string
	for _, f := range found {
		names = append(names, fmt.Sprintf("%s (ID %s)", f.About.Job, cmp.Or(f.About.ID, "not known yet")))
	}
	return nil, cmdline.UsageError(fmt.Errorf("%d jobs have a host %s; choose one by -job ID: %s", len(found), o.host, strings.Join(names, ", ")))
}

// elsewhere returns an error that says where to run the command if the host is of a site none of
// whose nodes is found on this machine.
func (o *drainOptions) elsewhere(found []links.FoundNode) error {
	for i := range found {
		f := &found[i]
		if f.Node == nil || !links.IsCalled(o.job, f.About.Job, f.About.ID) {
			continue
		}
		for _, s := range f.Node.Sites {
			if !slices.Contains(s.Hosts, o.host) {
				continue
			}
			where := "that host"
			if len(s.Hosts) > 1 {
				where += ", or another one of its site: " + hostlist.Compress(slices.DeleteFunc(slices.Clone(s.Hosts), func(h string) bool { return h == o.host }))
			}
			return fmt.Errorf("host %s is of site %s of job %s, of which no node answers on this machine; run the command there, on %s", o.host, cmp.Or(s.Name, fmt.Sprintf("client %d", s.Client)), f.About.Job, where)
		}
	}
	return nil
}

// isOf reports whether a node runs a host: that alone, or all of its site.
func isOf(f *links.FoundNode, name string) bool {
	if f.About.Host != "" {
		return f.About.Host == name
	}
	return f.Node != nil && slices.ContainsFunc(f.Node.Sites, func(s links.Site) bool { return s.Client == f.About.Client && slices.Contains(s.Hosts, name) })
}

func (o *drainOptions) ask(f *links.FoundNode, op links.Op) (*links.Drain, error) {
	r := links.Request{Op: op, Transport: o.transport}
	if f.About.Host != "" {
		r.Host, r.Number = f.About.Host, f.About.Number+1
	}
	a, err := ask(f, askTime, r)
	if err == nil && a.Drain == nil {
		err = errors.New("the node's answer says nothing about it")
	}
	if err != nil {
		return nil, err
	}
	return a.Drain, nil
}

const askTime = 10 * time.Second

// follow asks again until nothing uses the plugins, or the time is over, and prints what changes.
func (o *drainOptions) follow(f *links.FoundNode, a *links.Drain, out io.Writer) (_ *links.Drain, err error) {
	over := time.After(o.deadline)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	said := ""
	for {
		if text := o.progress(a); text != said && !o.json {
			fmt.Fprint(out, text)
			said = text
		}
		if !a.InUse() || !a.Moves() {
			return a, nil
		}
		select {
		case <-tick.C:
		case <-over:
			return a, nil
		}
		if a, err = o.ask(f, links.OpDrained); err != nil {
			return nil, err
		}
	}
}

func (o *drainOptions) progress(a *links.Drain) string {
	var b strings.Builder
	for _, t := range a.Transports {
		if !t.InUse() {
			fmt.Fprintf(&b, "host %s: nothing uses %s, process %d\n", o.host, t.Transport, t.PID)
			continue
		}
		var what []string
		for _, x := range []struct {
			n    int
			text string
		}{
			{t.Moving, "move to another transport"}, {t.Waiting, "are resumed, but have no other transport"},
			{t.Fixed, "are not resumed"}, {t.ToWorlds, "lead to other worlds and stay until they are closed"}, {t.Channels, "are channels between hosts"},
		} {
			if x.n > 0 {
				what = append(what, fmt.Sprintf("%d %s", x.n, x.text))
			}
		}
		fmt.Fprintf(&b, "host %s: links by %s, process %d: %s\n", o.host, t.Transport, t.PID, strings.Join(what, ", "))
	}
	return b.String()
}

func (o *drainOptions) conclude(a *links.Drain, out, errs io.Writer) (int, error) {
	status := statusOK
	if !o.undrain && a.InUse() {
		status = statusInUse
	}
	if o.json {
		return printJSON(a, status, out)
	}
	for _, t := range a.Transports {
		switch {
		case o.undrain:
			fmt.Fprintf(out, "host %s: new links use %s again\n", o.host, t.Transport)
		case !t.InUse():
		case t.Fixed > 0:
			fmt.Fprintf(errs, "host %s: %s is still used, by links that end with its process, as their routes have resume = false\n", o.host, t.Transport)
		default:
			fmt.Fprintf(errs, "host %s: %s is still used; impi-node plugins reload %s replaces it, and these links are resumed by its next process\n", o.host, t.Transport, t.Transport)
		}
	}
	return status, nil
}
