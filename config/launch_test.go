package config

import (
	"strings"
	"testing"
)

// TestDeafTool: which commands do not pass standard input on.
func TestDeafTool(t *testing.T) {
	for command, want := range map[string]string{
		"kubectl exec {name} --":                         "kubectl",
		"kubectl exec -nimpi -t {name} -- run -i":        "kubectl",
		"kubectl exec --stdin=false {name} --":           "kubectl",
		"sudo /usr/bin/docker exec {name}":               "docker",
		"podman exec -it {name}":                         "",
		"kubectl exec -ti {name} --":                     "",
		"kubectl -n team exec --stdin {name} -c app --":  "",
		"kubectl exec {name} --stdin=true --":            "",
		"docker exec --interactive {name}":               "",
		"kubectl run -i {name} --":                       "",
		"kubectl attach {name}":                          "",
		"rsh {host} {command}":                           "",
		"env -i ssh -n {host} kubectl exec {name} -- sh": "kubectl",
	} {
		if got := deafTool(strings.Fields(command)); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
