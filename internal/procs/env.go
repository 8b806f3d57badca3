package procs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/wireup"
)

// private are the variables of the node's environment that procs do not get: they have secrets, or
// would make a proc whose program is impi-node itself run as a plugin or a node.
var private = []string{
	"IMPI_AUTH_KEY", "IMPI_AUTH_NONE", HandoffVariable, wireup.EnvSocket,
	"IMPI_TRANSPORT_PLUGIN", "IMPI_BUILTIN_TRANSPORT", "IMPI_PLUGIN_LOG_LEVEL",
	siteVariable, "IMPI_SITE_PROC", wireup.EnvProcs,
}

// IsPrivateVariable reports whether procs do not get a variable of the node's environment.
func IsPrivateVariable(name string) bool { return slices.Contains(private, name) }

func keyVariables(job *config.Job) (names []string) {
	for _, s := range job.All() {
		names = append(names, s.Auth.Variable, s.Names.Auth.Variable)
	}
	return names
}

// HandoffVariable is the environment variable with the number of the descriptor by which a node
// that was started by a launcher of several nodes talks to it.
const HandoffVariable = "IMPI_NODE_HANDOFF"

const siteVariable = "IMPI_SITE"

// launcherEnv is the node's environment without the private variables, those with the job's keys
// and those that the site sets for its procs.
func launcherEnv(node, keys []string, site map[string]string) (env []string) {
	for _, v := range node {
		name, _, _ := strings.Cut(v, "=")
		if _, set := site[name]; !set && !IsPrivateVariable(name) && !slices.Contains(keys, name) {
			env = append(env, v)
		}
	}
	return env
}

// procEnv is the environment of a proc: the node's without the private variables and those with the
// job's keys, the site's own variables, and those by which the proc finds its node. procs is how
// many the job has, 0 if that is not known yet.
func procEnv(node, keys []string, site map[string]string, name string, local, procs int) []string {
	ours := map[string]string{
		wireup.EnvSocket: fmt.Sprint(controlFD),
		siteVariable:     name,
		"IMPI_SITE_PROC": fmt.Sprint(local),
	}
	if procs > 0 {
		ours[wireup.EnvProcs] = fmt.Sprint(procs)
	}
	env := launcherEnv(node, keys, site)
	for _, vars := range []map[string]string{site, ours} {
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			if _, also := ours[name]; !also || vars[name] == ours[name] {
				env = append(env, name+"="+vars[name])
			}
		}
	}
	return env
}
