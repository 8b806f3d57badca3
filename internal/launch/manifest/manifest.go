// Package manifest writes what a cluster's scheduler takes to run a site of a job file: objects of
// Kubernetes and jobs of Nomad. They start one impi-node in each of as many containers as the site
// has hosts; a node finds its place by the index that the scheduler gives its container (Index).
//
// The file stays the only place where a job is described: the names of its hosts say what the
// scheduler's objects are called, since they have to be those that the scheduler's DNS gives.
package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// indexVariables are the variables by which schedulers tell containers their indices, from 0.
var indexVariables = []string{"JOB_COMPLETION_INDEX", "NOMAD_ALLOC_INDEX"}

// Index returns which host of a site this container is for, and the variable that contains this
// index. found is false if environ has no index of a container, or the hosts do not have names as a
// scheduler gives them.
func Index(environ func(name string) (string, bool), hosts []config.Host) (place int, variable string, found bool) {
	for _, variable := range indexVariables {
		v, set := environ(variable)
		i, err := strconv.Atoi(v)
		if !set || err != nil || i < 0 {
			continue
		}
		for k, h := range hosts {
			if _, index, _, ok := split(h.Name); !ok || index != k {
				return 0, "", false
			}
		}
		return i, variable, true
	}
	return 0, "", false
}

// split takes the name of a host apart: alpha-3.hosts.team.svc is alpha, 3 and hosts.team.svc.
func split(name string) (job string, index int, domain string, ok bool) {
	label, domain, dotted := strings.Cut(name, ".")
	i := strings.LastIndex(label, "-")
	if i < 1 || !dotted {
		return "", 0, "", false
	}
	index, err := strconv.Atoi(label[i+1:])
	return label[:i], index, domain, err == nil && label[i+1:] == strconv.Itoa(index)
}

// Options are settings that the job file does not contain.
type Options struct {
	Image   string // of containers: it has impi-node and the program
	Memory  int64  // of a container for each of its procs, in bytes
	Secrets bool   // write keys and certificates themselves instead of placeholders
	Driver  Driver // of Nomad; empty: Docker

	// SecretVariables are variables of the job file that are stored as secrets like keys, not in
	// the clear.
	SecretVariables []string
}

// Driver is how a client of Nomad starts a node.
type Driver string

// Docker needs Options.Image. The others start what is installed on the client: Exec in a root
// folder of its own as nobody, RawExec as the agent's user.
const (
	Docker  Driver = "docker"
	Exec    Driver = "exec"
	RawExec Driver = "raw_exec"
)

// DefaultMemory is the default memory of containers for each proc, in bytes.
const DefaultMemory = 1 << 30

type site struct {
	Options

	File    string // the name of the job file, without a folder
	Text    string // its content
	Name    string // of the site
	Job     string // name of hosts without their indices
	Domain  string // what follows their index
	Hosts   int
	Procs   int // largest number on one host
	Files   []file
	Vars    []variable
	Ports   []port
	Seconds int // time that nodes have to end
}

type file struct {
	Path    string // from the folder of the job file
	Content string // empty without Options.Secrets
}

// Key returns the name of the file where names cannot have slashes.
func (f file) Key() string { return strings.ReplaceAll(f.Path, "/", "_") }

// variable is an environment variable that the job file uses. Those with keys are Secret, and those
// that Options say are.
type variable struct {
	Name, Value string
	Secret      bool
}

type port struct {
	Name   string
	Number uint16
}

const maxFile = 1 << 20

// maxText bounds the job file: a ConfigMap holds 1 MiB in all.
const maxText = 512 << 10

// describe collects what is needed of a site of a job, or all that is wrong with it.
func describe(job *config.Job, s config.Site, o Options) (d site, err error) {
	d = site{Options: o, File: filepath.Base(job.File), Name: s.Name, Hosts: len(s.Hosts), Seconds: int(job.Limits.Stop.Seconds()) + 5}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("site %s: "+format, append([]any{s.Name}, args...)...))
	}
	text, err := config.ReadText(job.File)
	if err != nil || len(text) > maxText {
		fault("the job file must be text of at most %d bytes: %v", maxText, err)
	}
	d.Text = string(text)
	if s.Launch != nil {
		fault("it has a launch block, but it is the scheduler that starts its hosts: take the block out")
	}
	if c := s.Program.Command; len(c) > 0 && strings.Contains(c[0], "/") && !filepath.IsAbs(c[0]) {
		fault("the program %q would be looked for in the folder of the job file, where containers have nothing else: write its absolute path in the image", c[0])
	}
	if err := d.names(s.Hosts); err != nil {
		fault("%w", err)
	}
	for _, path := range paths(s) {
		f, err := d.file(job, path)
		if err != nil {
			fault("%w", err)
		}
		d.Files = append(d.Files, f)
	}
	if err := d.variables(s); err != nil {
		fault("%v", err)
	}
	stored := map[string]string{}
	store := func(key, what string) {
		if other, ok := stored[key]; ok {
			fault("%s and %s would have the same name %s where secrets are kept: rename one of them", other, what, key)
		}
		stored[key] = what
	}
	for _, f := range d.Files {
		store(f.Key(), f.Path)
	}
	for _, v := range d.Vars {
		if v.Secret {
			store(v.Name, "the variable "+v.Name)
		}
	}
	d.ports(s)
	return d, errors.Join(faults...)
}

// names takes the names of hosts, which must be those of containers.
func (d *site) names(hosts []config.Host) error {
	for i, h := range hosts {
		job, index, domain, ok := split(h.Name)
		if i == 0 {
			d.Job, d.Domain = job, domain
		}
		if !ok || index != i || job != d.Job || domain != d.Domain {
			const most = "alpha-[0-%d].alpha"
			return fmt.Errorf("its host %d is %s, but containers are called NAME-0.DOMAIN, NAME-1.DOMAIN and so on: write, for example, hosts = %q", i, h, fmt.Sprintf(most, len(hosts)-1))
		}
		if h.Auto || h.Procs == 0 {
			return fmt.Errorf("its host %s has procs = \"auto\", but the size of a container comes from that: write a number", h)
		}
		d.Procs = max(d.Procs, h.Procs)
	}
	return nil
}

func paths(s config.Site) (list []string) {
	add := func(path string) {
		if path != "" && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	add(s.Auth.File)
	add(s.Names.Auth.File)
	for _, t := range s.Transports {
		for _, x := range t.Settings {
			if path, ok := x.Value.(string); ok && slices.Contains([]string{"cert", "key", "ca"}, x.Name) {
				add(path)
			}
		}
	}
	return list
}

func (d *site) file(job *config.Job, path string) (f file, err error) {
	if !filepath.IsLocal(path) {
		return f, fmt.Errorf("the file %q is not in the folder of the job file, which is another one in containers: move it there, and write its path from there", path)
	}
	f.Path = filepath.Clean(path)
	if !d.Secrets {
		return f, nil
	}
	full := filepath.Join(filepath.Dir(job.File), path)
	b, err := plainfile.Read(full, maxFile)
	if err == nil && !utf8.Valid(b) {
		err = fmt.Errorf("%s is no text", full)
	}
	f.Content = string(b)
	return f, err
}

func (d *site) variables(s config.Site) error {
	tokens, _ := hclsyntax.LexConfig([]byte(d.Text), d.File, hcl.InitialPos)
	seen := map[string]bool{}
	add := func(name string, secret bool) {
		if name != "" && !seen[name] {
			seen[name] = true
			v := variable{Name: name, Secret: secret}
			if !secret || d.Secrets {
				v.Value = os.Getenv(name)
			}
			d.Vars = append(d.Vars, v)
		}
	}
	add(s.Auth.Variable, true)
	add(s.Names.Auth.Variable, true)
	for i := 2; i < len(tokens); i++ {
		if string(tokens[i-2].Bytes) == "env" && tokens[i-1].Type == hclsyntax.TokenDot && tokens[i].Type == hclsyntax.TokenIdent {
			name := string(tokens[i].Bytes)
			add(name, slices.Contains(d.SecretVariables, name))
		}
	}
	for _, name := range d.SecretVariables {
		if !seen[name] {
			return fmt.Errorf("-secret-variable %s: the job file does not use env.%s", name, name)
		}
	}
	return nil
}

func (d *site) ports(s config.Site) {
	if len(s.Hosts) > 1 {
		head := s.HeadAddress().Port()
		if s.HeadName != "" {
			head = s.Head.Port()
		}
		d.Ports = append(d.Ports, port{"head", head})
	}
	if s.Server.Embedded && s.Server.Address.Port() != 0 {
		d.Ports = append(d.Ports, port{"server", s.Server.Address.Port()})
	}
}
