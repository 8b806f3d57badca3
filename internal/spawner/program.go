package spawner

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/procs"
)

// arches maps other names of architectures in the info key arch to Go's.
var arches = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "i386": "386", "i686": "386"}

// programOf finds the program of a command of a spawn at a site, or says why it cannot be started.
// elsewhere: another site asks for it.
func programOf(site *config.Site, c *spawn.Command, elsewhere bool) (p config.Program, problem string) {
	if site.Native != nil {
		return p, fmt.Sprintf("the launcher of the MPI that site %s has of its own cannot add procs; name another site or host in the info key host", site.Name)
	}
	if arch := c.Info["arch"]; arch != "" {
		if also, ok := arches[arch]; ok {
			arch = also
		}
		if arch != runtime.GOARCH {
			return p, fmt.Sprintf("arch is %q, and this site's machine is %s", c.Info["arch"], runtime.GOARCH)
		}
	}
	p = config.Program{Dir: site.Program.Dir, Env: maps.Clone(site.Program.Env), PrefixOutput: site.Program.PrefixOutput, Stdin: -1}
	if p.Path, problem = findSpawned(site.Program.Dir, c.Path, c.Info["path"]); problem != "" {
		return p, problem
	}
	if !site.Spawn.Allows(p.Path, elsewhere) {
		return p, notAllowed(site, p.Path, elsewhere)
	}
	if wdir := c.Info["wdir"]; wdir != "" {
		if !filepath.IsAbs(wdir) {
			wdir = filepath.Join(p.Dir, wdir)
		}
		if info, err := os.Stat(wdir); err != nil || !info.IsDir() {
			return p, fmt.Sprintf("there is no folder %q to be its wdir", wdir)
		}
		p.Dir = wdir
	}
	problem = addEnv(&p, c.Info["env"], elsewhere)
	p.Command = append([]string{c.Path}, c.Args...)
	return p, problem
}

func notAllowed(site *config.Site, path string, elsewhere bool) string {
	if site.Spawn.Allow == nil {
		return fmt.Sprintf("site %s lets no other site spawn: its file needs a spawn block with allow", site.Name)
	}
	return fmt.Sprintf("%s is not in the allow list of the spawn block of site %s", path, site.Name)
}

// findSpawned looks for a program: in the folders of the info key path, separated
// by colons, if its name has no slash, and else as the program of a job file.
func findSpawned(dir, name, folders string) (path, problem string) {
	if name == "" {
		return "", "it has no name"
	}
	if folders == "" || strings.Contains(name, "/") {
		return config.FindProgram(dir, name)
	}
	for _, folder := range filepath.SplitList(folders) {
		if path, problem = config.FindProgram(dir, "./"+filepath.Join(folder, name)); filepath.IsAbs(folder) {
			path, problem = config.FindProgram(dir, filepath.Join(folder, name))
		}
		if problem == "" {
			return path, ""
		}
	}
	return "", fmt.Sprintf("there is no program %q in %s, its path", name, folders)
}

// addEnv adds the variables of the info key env, a line NAME=value for each. Other sites must not
// set any: with a variable such as LD_PRELOAD they could make an allowed program run any code.
func addEnv(p *config.Program, env string, elsewhere bool) (problem string) {
	if env == "" {
		return ""
	}
	if elsewhere {
		return "env is only for procs spawned at the site that spawns them"
	}
	if p.Env == nil {
		p.Env = make(map[string]string)
	}
	for line := range strings.Lines(env) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || name == "" || procs.IsPrivateVariable(name) || strings.ContainsRune(line, 0) {
			return fmt.Sprintf("env has %q, which is no NAME=value that a proc can have", line)
		}
		p.Env[name] = value
	}
	return ""
}
