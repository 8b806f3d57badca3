package manifest

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch/manifest/manifesttest"
)

const jobFile = `job {
  embedded_server { listen = "alpha-0.alpha:7800" }
  auth "key" { file = "job.key" }
}
program { command = ["/app/ring", "${env.ROUNDS}", "[\"a: b\"]"] }
site "alpha" {
  client = 0
  hosts  = "alpha-[0-2].alpha"
  procs  = 2
  # 	with a tab
  transport "tcp" { config { cert = "certs/alpha.pem"  key = "certs/alpha.key" } }
}
site "beta" {
  client = 1
  hosts  = "beta-[0-1].service.consul"
  procs  = 4
}
`

// write puts a job file and its keys into a folder.
func write(t *testing.T, text string) (file string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/certs", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"job.hcl": text, "job.key": "4242\n", "certs/alpha.pem": "A\nB\n", "certs/alpha.key": "C: \"\\n\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "job.hcl")
}

func load(t *testing.T) func(string) *config.Job {
	return func(file string) *config.Job {
		job, found := config.Load(file, config.Options{
			Builtins: []config.Builtin{{Name: "tcp"}}, Local: func(netip.Addr) bool { return false },
		})
		if job == nil {
			t.Error(found)
		}
		return job
	}
}

// execute runs the command. The error has what it complains of.
func execute(t *testing.T, args []string, out io.Writer) error {
	t.Helper()
	var errs strings.Builder
	if status := Command(load(t)).Execute(args, out, &errs); status != 0 {
		return fmt.Errorf("status %d: %s", status, &errs)
	}
	return nil
}

// print runs the command, and gives the objects as the scheduler's own types have understood them.
func print[T any](t *testing.T, checker, kind string, args ...string) (objects []T) {
	t.Helper()
	var out strings.Builder
	if err := execute(t, append([]string{kind}, args...), &out); err != nil {
		t.Fatal(err)
	}
	return manifesttest.Objects[T](t, checker, kind, []byte(out.String()), false)
}

// object is what the test looks at of an object of Kubernetes.
type k8sObject struct {
	Kind       string
	Metadata   struct{ Name, Namespace string }
	Data       map[string]string
	StringData map[string]string
	Spec       struct {
		ClusterIP                string
		PublishNotReadyAddresses bool
		Selector                 map[string]string
		Ports                    []struct{ Port int }

		CompletionMode                         string
		Completions, Parallelism, BackoffLimit int

		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Subdomain, RestartPolicy string
				SecurityContext          struct {
					RunAsNonRoot bool
					RunAsUser    int
				}
				Containers []struct {
					Image          string
					Command        []string
					Env            []struct{ Name, Value string }
					Resources      struct{ Limits map[string]string }
					ReadinessProbe *struct{ Exec struct{ Command []string } }
				}
				Volumes []struct {
					Projected struct {
						Sources []struct {
							ConfigMap struct{ Name string }
							Secret    struct {
								Name  string
								Items []struct{ Key, Path string }
							}
						}
					}
				}
			}
		}
	}
}

func TestKubernetes(t *testing.T) {
	t.Setenv("ROUNDS", "1: #\"2$(HOME)")
	checker, file := manifesttest.Checker(t, "check"), write(t, jobFile)
	for name, args := range map[string][]string{"placeholders": nil, "secrets": {"-secrets"}} {
		t.Run(name, func(t *testing.T) {
			objects := print[k8sObject](t, checker, "kubernetes", append(args, file, "-site", "alpha", "-image", "r/ring:1", "-memory", "2Gi")...)
			if len(objects) != 4 {
				t.Fatalf("%d objects: %+v", len(objects), objects)
			}
			c, secret, service, job := objects[0], objects[1], objects[2], objects[3]
			if c.Kind != "ConfigMap" || c.Data["job.hcl"] != jobFile {
				t.Errorf("%+v", c)
			}
			want := map[string]string{"job.key": "4242\n", "certs_alpha.pem": "A\nB\n", "certs_alpha.key": "C: \"\\n\n"}
			for key, content := range want {
				if args == nil {
					content = "put what is in " + strings.ReplaceAll(key, "_", "/") + " here"
				}
				if secret.StringData[key] != content {
					t.Errorf("%s is %q", key, secret.StringData[key])
				}
			}
			if service.Metadata.Name != "alpha" || service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses ||
				len(service.Spec.Ports) != 2 || service.Spec.Selector["impi-service"] != "alpha" || job.Spec.Template.Metadata.Labels["impi-service"] != "alpha" {
				t.Errorf("%+v", service)
			}
			wantJob(t, job, len(want))
		})
	}
}

// wantJob checks the Job of site alpha, and that its files are those of the Secret.
func wantJob(t *testing.T, job k8sObject, files int) {
	t.Helper()
	if s := job.Spec; job.Metadata.Name != "alpha" || s.CompletionMode != "Indexed" || s.Completions != 3 || s.Parallelism != 3 || s.BackoffLimit != 0 {
		t.Errorf("%+v", s)
	}
	p := job.Spec.Template.Spec
	if p.Subdomain != "alpha" || p.RestartPolicy != "Never" || !p.SecurityContext.RunAsNonRoot || p.SecurityContext.RunAsUser != user || len(p.Containers) != 1 {
		t.Fatalf("%+v", p)
	}
	x := p.Containers[0]
	if strings.Join(x.Command, " ") != "impi-node -config /etc/impi/job.hcl -site alpha" || x.Image != "r/ring:1" ||
		x.Resources.Limits["cpu"] != "2" || x.Resources.Limits["memory"] != "4Gi" && x.Resources.Limits["memory"] != "4294967296" || x.ReadinessProbe == nil {
		t.Errorf("%+v", x)
	}
	if len(x.Env) != 2 || x.Env[1].Name != "ROUNDS" || x.Env[1].Value != "1: #\"2$$(HOME)" {
		t.Errorf("%+v", x.Env)
	}
	items := p.Volumes[1].Projected.Sources[1].Secret.Items
	if len(items) != files {
		t.Errorf("%+v", items)
	}
	for _, i := range items {
		if i.Key != strings.ReplaceAll(i.Path, "/", "_") {
			t.Errorf("%+v", i)
		}
	}
}

// nomadJob is what the test looks at of a job of Nomad.
type nomadJob struct {
	ID, Type   string
	TaskGroups []struct {
		Count         int
		Services      []struct{ Name, Provider string }
		RestartPolicy struct{ Attempts int }
		Constraints   []struct{ Operand string }
		Networks      []struct{ ReservedPorts []struct{ Value int } }
		Tasks         []struct {
			User      string
			Driver    string
			Config    map[string]any
			Env       map[string]string
			Resources struct{ Cores, MemoryMB int }
			Templates []struct {
				EmbeddedTmpl, DestPath, LeftDelim, RightDelim string
				Uid                                           int
			}
		}
	}
}

func TestNomad(t *testing.T) {
	t.Setenv("ROUNDS", "3")
	checker, file := manifesttest.Checker(t, "check"), write(t, jobFile)
	for name, c := range map[string]struct {
		args []string
		key  string
	}{
		"placeholders": {nil, `[[[[ with nomadVar "nomad/jobs/beta" ]]]][[[[ index . "job.key" ]]]][[[[ end ]]]]`},
		"secrets":      {[]string{"-secrets"}, "4242\n"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := print[nomadJob](t, checker, "nomad", append(c.args, "-site", "beta", "-image", "r/ring:1", file)...)
			if len(jobs) != 1 || jobs[0].ID != "beta" || jobs[0].Type != "batch" || len(jobs[0].TaskGroups) != 1 {
				t.Fatalf("%+v", jobs)
			}
			g := jobs[0].TaskGroups[0]
			if g.Count != 2 || g.RestartPolicy.Attempts != 0 || g.Services[0].Name != "beta-${NOMAD_ALLOC_INDEX}" || g.Services[0].Provider != "consul" ||
				g.Constraints[0].Operand != "distinct_hosts" || g.Networks[0].ReservedPorts[0].Value != config.HeadPort {
				t.Errorf("%+v", g)
			}
			x := g.Tasks[0]
			if x.User != "65532" || x.Config["image"] != "r/ring:1" || x.Env["ROUNDS"] != "3" || x.Resources.Cores != 4 || x.Resources.MemoryMB != 4096 {
				t.Errorf("%+v", x)
			}
			if len(x.Templates) != 2 || x.Templates[0].DestPath != "secrets/job.hcl" || x.Templates[0].EmbeddedTmpl != jobFile ||
				x.Templates[1].DestPath != "secrets/job.key" || x.Templates[1].EmbeddedTmpl != c.key || x.Templates[1].LeftDelim != "[[[[" {
				t.Errorf("%+v", x.Templates)
			}
		})
	}
}

// TestNomadWithoutImages: what is installed on clients is started by who may read the files.
func TestNomadWithoutImages(t *testing.T) {
	t.Setenv("ROUNDS", "3")
	checker, file := manifesttest.Checker(t, "check"), write(t, jobFile)
	for driver, user := range map[string]string{"exec": "nobody 65534", "raw_exec": " -1"} {
		x := print[nomadJob](t, checker, "nomad", "-driver", driver, "-site", "beta", file)[0].TaskGroups[0].Tasks[0]
		who := fmt.Sprintf("%s %d", x.User, x.Templates[1].Uid)
		if x.Driver != driver || who != user || x.Config["command"] != "impi-node" || x.Config["image"] != nil {
			t.Errorf("%s: %q, %+v", driver, who, x)
		}
	}
}

// TestNomadKeepsValues: what Nomad would replace in a task's Env is in a template.
func TestNomadKeepsValues(t *testing.T) {
	t.Setenv("ROUNDS", "${NOMAD_TASK_DIR}")
	x := print[nomadJob](t, manifesttest.Checker(t, "check"), "nomad", "-site", "beta", "-image", "x", write(t, jobFile))[0].TaskGroups[0].Tasks[0]
	last := x.Templates[len(x.Templates)-1]
	if _, there := x.Env["ROUNDS"]; there || last.EmbeddedTmpl != "ROUNDS=${NOMAD_TASK_DIR}\n" {
		t.Errorf("%q, %+v", x.Env, last)
	}
}

// TestSecretVariables: a variable that is said to be secret is kept as keys are, and is in the
// manifest with -secrets alone, in its Secret.
func TestSecretVariables(t *testing.T) {
	t.Setenv("ROUNDS", "mellon")
	for args, times := range map[string]int{"": 1, "-secret-variable ROUNDS": 0, "-secret-variable ROUNDS -secrets": 1} {
		for kind, site := range map[string]string{"kubernetes": "alpha", "nomad": "beta"} {
			file := write(t, jobFile)
			var out strings.Builder
			err := execute(t, slices.Concat([]string{kind, file, "-image", "x", "-site", site}, strings.Fields(args)), &out)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(out.String(), "mellon"); n != times {
				t.Errorf("%s %q: the value is there %d times, want %d:\n%s", kind, args, n, times, &out)
			}
			secret, _, _ := strings.Cut(out.String(), "kind: Job")
			if kind == "kubernetes" && strings.Contains(secret, "mellon") != strings.Contains(args, "-secrets") {
				t.Errorf("%q: the value is in the wrong part:\n%s", args, &out)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	t.Setenv("ROUNDS", "3")
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(jobFile) }
	for name, c := range map[string]struct{ text, args, want string }{
		"kind":      {jobFile, "docker FILE -image x", `no command "docker"; known here: kubernetes, nomad`},
		"image":     {jobFile, "kubernetes FILE", "-image is missing"},
		"driver":    {jobFile, "nomad FILE -driver lxc", "docker, exec and raw_exec"},
		"pod":       {jobFile, "kubernetes FILE -driver exec", "Kubernetes has containers only"},
		"no pull":   {jobFile, "nomad FILE -driver exec -image x", "and no image"},
		"flag":      {jobFile, "kubernetes FILE -imgae x", "not defined: -imgae; did you mean -image?"},
		"typo":      {jobFile, "kubernetes FILE -image x -memory 2", "at least 16Mi"},
		"no site":   {jobFile, "kubernetes FILE -image x -site gamma", `has no site "gamma" that runs impi; it has alpha, beta`},
		"no image":  {jobFile, `kubernetes FILE -site alpha -image "ab"`, "is no name of an image"},
		"memory":    {jobFile, "kubernetes FILE -image x -memory 1G", "such as 512Mi"},
		"sites":     {jobFile, "kubernetes FILE -image x", "has the sites alpha, beta"},
		"consul":    {jobFile, "kubernetes FILE -image x -site beta", "are none of Kubernetes"},
		"pods":      {jobFile, "nomad FILE -image x -site alpha", `write hosts = "alpha-[0-2].service.consul"`},
		"names":     {replace("alpha-[0-2].alpha", "node[1-3].alpha"), "kubernetes FILE -image x -site alpha", "its host 0 is node1.alpha"},
		"order":     {replace("alpha-[0-2].alpha", "alpha-[1-3].alpha"), "kubernetes FILE -image x -site alpha", "its host 0 is alpha-1.alpha"},
		"jobs":      {replace("alpha-[0-2].alpha", "a-0.x,b-1.x"), "kubernetes FILE -image x -site alpha", "its host 1 is b-1.x"},
		"letters":   {replace("alpha-[0-2].alpha", "A-0.x"), "kubernetes FILE -image x -site alpha", "small letters"},
		"numbers":   {replace("alpha-[0-2].alpha", "10.0.0.1"), "kubernetes FILE -image x -site alpha", "its host 0 is 10.0.0.1"},
		"program":   {replace("/app/ring", "./ring"), "kubernetes FILE -image x -site alpha", "write its absolute path"},
		"folder":    {replace(`"job.key"`, `"/etc/job.key"`), "kubernetes FILE -image x -site alpha", "is not in the folder of the job file"},
		"launch":    {replace("client = 0", "client = 0\n launch \"ssh\" {}"), "kubernetes FILE -image x -site alpha", "take the block out"},
		"no secret": {replace("job.key", "jib.key"), "kubernetes FILE -image x -site alpha -secrets", "jib.key: no such file"},
		"auto":      {replace("procs  = 2", "procs = \"auto\""), "kubernetes FILE -image x -site alpha", "write a number"},
		"keys":      {replace("certs/alpha.pem", "job_key", "certs/alpha.key", "job/key"), "kubernetes FILE -image x -site alpha", "would have the same name job_key"},
		"variable":  {jobFile, "kubernetes FILE -image x -site alpha -secret-variable ROUND", "-secret-variable ROUND: the job file does not use env.ROUND"},
		"template":  {replace("with a tab", "[[[["), "nomad FILE -image x -site beta", "begins in Nomad's templates"},
	} {
		file := write(t, c.text)
		err := execute(t, strings.Fields(strings.ReplaceAll(c.args, "FILE", file)), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestIndex(t *testing.T) {
	hosts := func(names ...string) (list []config.Host) {
		for _, n := range names {
			list = append(list, config.Host{Name: n})
		}
		return list
	}
	for name, c := range map[string]struct {
		variable, value string
		hosts           []config.Host
		want            int // -1: none
	}{
		"Kubernetes": {"JOB_COMPLETION_INDEX", "1", hosts("a-0.s", "a-1.s"), 1},
		"Nomad":      {"NOMAD_ALLOC_INDEX", "0", hosts("a-0.service.consul", "a-1.service.consul"), 0},
		"too many":   {"JOB_COMPLETION_INDEX", "2", hosts("a-0.s", "a-1.s"), 2},
		"other":      {"INDEX", "1", hosts("a-0.s", "a-1.s"), -1},
		"no number":  {"JOB_COMPLETION_INDEX", "-1", hosts("a-0.s"), -1},
		"names":      {"JOB_COMPLETION_INDEX", "0", hosts("node1.s"), -1},
		"padded":     {"JOB_COMPLETION_INDEX", "0", hosts("a-00.s"), -1},
		"addresses":  {"JOB_COMPLETION_INDEX", "0", hosts(""), -1},
	} {
		i, variable, found := Index(func(name string) (string, bool) { return c.value, name == c.variable }, c.hosts)
		if found != (c.want >= 0) || found && (i != c.want || variable != c.variable) {
			t.Errorf("%s: %d %s %v", name, i, variable, found)
		}
	}
}
