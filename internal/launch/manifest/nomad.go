package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/config"
)

// object is an object of Nomad's API, whose types have other names in each version but the same
// fields.
type object map[string]any

// Delimiters of Nomad's templates, which job files and keys do not have.
const (
	leftDelimiter  = "[[[["
	rightDelimiter = "]]]]"
)

// Nomad returns the job that runs a site in a cluster, as the JSON of Nomad's API, which nomad job
// run -json takes. Hosts must have the names of services in Consul's DNS: SITE-INDEX.service and a
// domain.
func Nomad(job *config.Job, s config.Site, o Options) ([]byte, error) {
	d, err := describe(job, s, o)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(d.Domain, "service.") {
		return nil, fmt.Errorf("site %s: hosts of the domain %s are none that Consul has for Nomad: write hosts = %q", s.Name, d.Domain, fmt.Sprintf("%s-[0-%d].service.consul", d.Job, d.Hosts-1))
	}
	if strings.Contains(d.Text, leftDelimiter) {
		return nil, fmt.Errorf("site %s: the job file contains %s, with which something else begins in Nomad's templates: write blanks between", s.Name, leftDelimiter)
	}
	text, err := json.MarshalIndent(object{"Job": d.nomadJob()}, "", "  ")
	return append(text, '\n'), err
}

func (d *site) nomadJob() object {
	var ports []object
	for _, p := range d.Ports {
		ports = append(ports, object{"Label": p.Name, "Value": p.Number})
	}
	return object{
		"ID": d.Job, "Name": d.Job, "Type": "batch", "Datacenters": []string{"*"},
		"TaskGroups": []object{{
			"Name": "hosts", "Count": d.Hosts,
			// If one fails, all of the job has failed, so none is tried again.
			"RestartPolicy":    object{"Attempts": 0, "Mode": "fail"},
			"ReschedulePolicy": object{"Attempts": 0, "Unlimited": false},
			"Constraints":      []object{{"Operand": "distinct_hosts", "RTarget": "true"}},
			"Networks":         []object{{"Mode": "host", "ReservedPorts": ports}},
			"Services":         []object{{"Name": d.Job + "-${NOMAD_ALLOC_INDEX}", "Provider": "consul", "AddressMode": "host"}},
			"Tasks":            []object{d.nomadTask()},
		}},
	}
}

func (d *site) nomadTask() object {
	env := object{"TMPDIR": "${NOMAD_TASK_DIR}"} // an image need not have /tmp
	for _, v := range d.Vars {
		if !v.Secret && !interpolated(v.Value) {
			env[v.Name] = v.Value
		}
	}
	return object{
		"Name": "impi-node", "Driver": d.driver(), "User": d.user().name, "Leader": true,
		"KillTimeout": int64(time.Duration(d.Seconds) * time.Second),
		"Config":      d.nomadConfig(),
		"Env":         env,
		"Resources":   object{"Cores": d.Procs, "MemoryMB": max(d.Memory*int64(d.Procs)>>20, 10)},
		"Templates":   d.templates(),
	}
}

func (d *site) driver() Driver { return cmp.Or(d.Driver, Docker) }

func (d *site) nomadConfig() object {
	args := []string{"-config", "${NOMAD_SECRETS_DIR}/" + d.File, "-site", d.Name}
	if d.driver() == Docker {
		return object{"image": d.Image, "network_mode": "host", "entrypoint": []string{"impi-node"}, "args": args}
	}
	return object{"command": "impi-node", "args": args}
}

type account struct {
	name string // empty: that of the agent
	id   int    // of user and group; -1: those of the agent
}

func (d *site) user() account {
	switch d.driver() {
	case Exec:
		return account{"nobody", 65534}
	case RawExec:
		return account{"", -1}
	case Docker:
	}
	return account{strconv.Itoa(user), user}
}

// interpolated reports whether Nomad might replace a part of a variable's value, as it does with
// ${NAME} in a task's Env, but not in a template.
func interpolated(value string) bool { return strings.Contains(value, "${") }

// templates are the files in the task's folder for secrets.
func (d *site) templates() (list []object) {
	add := func(path, text, mode string, env bool) {
		list = append(list, object{
			"EmbeddedTmpl": text, "DestPath": "secrets/" + path, "Perms": mode, "Uid": d.user().id, "Gid": d.user().id, "Envvars": env,
			"ChangeMode": "noop", "LeftDelim": leftDelimiter, "RightDelim": rightDelimiter,
		})
	}
	add(d.File, d.Text, "0400", false)
	for _, f := range d.Files {
		text := f.Content
		if !d.Secrets {
			text = d.stored(f.Key())
		}
		add(f.Path, text, "0400", false)
	}
	for _, v := range d.Vars {
		switch {
		case v.Secret && d.Secrets, !v.Secret && interpolated(v.Value):
			add(v.Name, v.Name+"="+v.Value+"\n", "0400", true)
		case v.Secret:
			add(v.Name, v.Name+"="+d.stored(v.Name)+"\n", "0400", true)
		}
	}
	return list
}

// stored is the template for a value in Nomad's own store of variables.
func (d *site) stored(key string) string {
	return fmt.Sprintf(`%s with nomadVar "nomad/jobs/%s" %s%[1]s index . %[4]q %[3]s%[1]s end %[3]s`, leftDelimiter, d.Job, rightDelimiter, key)
}
