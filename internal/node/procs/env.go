package procs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/wireup"
)

// private are the variables of the node's environment that no proc gets: they
// hold secrets, or would make a proc of the same binary take itself for
// something else.
var private = []string{
	"IMPI_AUTH_KEY", "IMPI_AUTH_NONE", HandoffVariable, wireup.EnvSocket,
	"IMPI_TRANSPORT_PLUGIN", "IMPI_BUILTIN_TRANSPORT", "IMPI_PLUGIN_LOG_LEVEL",
	"IMPI_SITE", "IMPI_SITE_PROC",
}

// Private tells whether no proc gets a variable of the node's environment.
func Private(name string) bool { return slices.Contains(private, name) }

// HandoffVariable names the variable by which the launcher of several nodes
// gives each of them a descriptor to talk to it.
const HandoffVariable = "IMPI_NODE_HANDOFF"

// procEnv is the environment of a proc: the node's without what is private, the
// site's own variables, and what tells the proc who started it.
func procEnv(node []string, site map[string]string, name string, local int) []string {
	ours := map[string]string{
		wireup.EnvSocket: fmt.Sprint(controlFD),
		"IMPI_SITE":      name,
		"IMPI_SITE_PROC": fmt.Sprint(local),
	}
	var env []string
	for _, v := range node {
		name, _, _ := strings.Cut(v, "=")
		if _, set := site[name]; !set && !Private(name) {
			env = append(env, v)
		}
	}
	for _, vars := range []map[string]string{site, ours} {
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			if _, also := ours[name]; !also || vars[name] == ours[name] {
				env = append(env, name+"="+vars[name])
			}
		}
	}
	return env
}
