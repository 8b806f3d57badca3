package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/manifest/manifesttest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// manifestCheck is where the command is that reads manifests, found before a test goes to another
// folder.
var manifestCheck, _ = filepath.Abs("../../internal/launch/manifest/check")

// ignored are fields that tell a cluster where pods may run, and how much they may use. Here they
// have no effect.
type ignored any

// podObject is what a manifest for Kubernetes may have: all of it has an effect on the pods of a
// test, but for what is ignored.
type podObject struct {
	Kind, APIVersion string
	Metadata         struct{ Name string }
	Data             map[string]string // of a ConfigMap
	StringData       map[string]string // of a Secret
	Type             ignored
	Status           ignored
	Spec             struct {
		// Of a Service.
		Ports                    ignored // without a cluster address they say nothing
		Selector                 map[string]string
		ClusterIP                string
		PublishNotReadyAddresses bool

		// Of a Job.
		Parallelism, Completions int
		BackoffLimit             ignored
		CompletionMode           string
		Template                 struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
	}
}

type podSpec struct {
	Subdomain          string
	EnableServiceLinks *bool
	Containers         []podContainer
	Volumes            []podVolume
	SecurityContext    struct {
		RunAsUser, RunAsGroup, FSGroup *int
		RunAsNonRoot                   bool
		SeccompProfile                 ignored
	}
	RestartPolicy, TerminationGracePeriodSeconds, AutomountServiceAccountToken, TopologySpreadConstraints ignored
}

type podContainer struct {
	Name, Image, WorkingDir string
	Command, Args           []string
	Env                     []struct {
		Name, Value string
		ValueFrom   *struct {
			SecretKeyRef struct{ Name, Key string }
		}
	}
	VolumeMounts []struct {
		Name, MountPath string
		ReadOnly        bool
	}
	ReadinessProbe struct {
		Exec                          struct{ Command []string }
		TimeoutSeconds, PeriodSeconds ignored
	}
	SecurityContext struct {
		Capabilities             struct{ Drop []string }
		ReadOnlyRootFilesystem   bool
		AllowPrivilegeEscalation *bool
	}
	Resources ignored
}

type podVolume struct {
	Name      string
	EmptyDir  *struct{}
	Projected *struct {
		DefaultMode os.FileMode
		Sources     []struct {
			ConfigMap struct{ Name string }
			Secret    struct {
				Name  string
				Items []struct{ Key, Path string }
			}
		}
	}
}

// kubelet runs the pods of a manifest as Kubernetes does: in the network of a machine, with the
// image as root folder, and with the files, the environment and the user of the manifest. It knows
// what images are: there is impi-node in them, which asks the name server of a test, and the
// program in /app, whose first argument is what FOR_PROGRAM must be.
type kubelet struct {
	t       *testing.T
	image   string
	objects map[string]podObject // by kind
	pods    []*pod
}

// pod is a pod, and its machine.
type pod struct {
	name    string // of the host, as others find it
	machine *netns.Machine
	env     []string
	enter   []string // what runs the words behind it in the container
	command []string
	probe   []string
}

// startKubelet takes a manifest with an Indexed Job. Its pods are on machines, in the order of
// their indices; their program does what mode says.
func startKubelet(t *testing.T, checker, manifest, mode string, machines []*netns.Machine) *kubelet {
	t.Helper()
	k := &kubelet{t: t, image: imageOf(t, mode), objects: map[string]podObject{}}
	for _, o := range manifesttest.Objects[podObject](t, checker, "kubernetes", []byte(manifest), true) {
		k.objects[o.Kind] = o
	}
	job, service := k.objects["Job"], k.objects["Service"]
	spec := job.Spec.Template.Spec
	switch {
	case job.Spec.CompletionMode != "Indexed" || job.Spec.Completions != len(machines) || job.Spec.Parallelism != len(machines) || len(spec.Containers) != 1:
		t.Fatalf("there are no %d pods at a time with indices: %+v", len(machines), job)
	case service.Metadata.Name != spec.Subdomain || service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses:
		t.Fatalf("the pods have no names before they are ready: %+v", service)
	}
	for name, value := range service.Spec.Selector {
		if job.Spec.Template.Metadata.Labels[name] != value {
			t.Fatalf("the service does not have these pods: %+v", service)
		}
	}
	for i, m := range machines {
		k.pods = append(k.pods, k.pod(i, m))
	}
	return k
}

// imageOf makes the root folder of containers. It has the folders of this computer that programs
// need.
func imageOf(t *testing.T, mode string) (image string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	image = t.TempDir()
	for _, dir := range []string{"app", "dev", "etc/impi", "proc", "programs", "tmp", "usr"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(image, dir), 0o755)) //nolint:gosec // of users that are not root
	}
	for _, dir := range []string{"bin", "lib", "lib64", "sbin"} {
		if to, e := os.Readlink("/" + dir); e == nil {
			err = errors.Join(err, os.Symlink(to, filepath.Join(image, dir)))
		}
	}
	put := func(name, content string) {
		err = errors.Join(err, os.WriteFile(filepath.Join(image, name), []byte(content), 0o755)) //nolint:gosec // it is run
	}
	put("programs/node", string(program))
	put("programs/impi-node", fmt.Sprintf("#!/bin/sh\nexport %s=1 %s=%s %s=10.77.0.1:5300\nexec /usr/local/bin/node \"$@\"\n", asNode, asProgram, mode, envDNS))
	put("app/ring", "#!/bin/sh\n[ \"$1\" = \"$FOR_PROGRAM\" ] || { echo \"FOR_PROGRAM is $FOR_PROGRAM\" >&2; exit 9; }\nexec /usr/local/bin/node\n")
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// pod makes what a pod needs.
func (k *kubelet) pod(index int, m *netns.Machine) *pod {
	k.t.Helper()
	job := k.objects["Job"]
	spec := job.Spec.Template.Spec
	c := spec.Containers[0]
	name := fmt.Sprintf("%s-%d", job.Metadata.Name, index)
	p := &pod{name: name + "." + spec.Subdomain, machine: m, command: slices.Concat(c.Command, c.Args), probe: c.ReadinessProbe.Exec.Command}
	p.env = k.environment(&spec, name, index)
	user, group, files := spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsGroup, spec.SecurityContext.FSGroup
	if user == nil || group == nil || files == nil || *user == 0 || !spec.SecurityContext.RunAsNonRoot {
		k.t.Fatalf("it runs as root, or by a user or group that the image has: %+v", spec.SecurityContext)
	}
	script := "set -e\ncd \"$0\"\nmount --bind . .\ncd \"$0\"\nhostname " + name + "\n" +
		"mount --bind /usr usr\nmount --bind programs usr/local/bin\nmount --rbind /dev dev\nmount -t tmpfs -o mode=1777 shm dev/shm\nmount --rbind /proc proc\n"
	dirs := map[string]string{}
	for _, v := range spec.Volumes {
		dirs[v.Name] = k.volume(&v, *files)
	}
	for _, mount := range c.VolumeMounts {
		at := strings.TrimPrefix(mount.MountPath, "/")
		if dirs[mount.Name] == "" {
			k.t.Fatalf("there is no volume %s", mount.Name)
		}
		script += fmt.Sprintf("mount --bind %s %s\n", dirs[mount.Name], at)
		if mount.ReadOnly {
			script += "mount -o remount,bind,ro " + at + "\n"
		}
	}
	if c.SecurityContext.ReadOnlyRootFilesystem {
		script += "mount -o remount,bind,ro .\n"
	}
	script += fmt.Sprintf("exec setpriv --reuid %d --regid %d --groups %d", *user, *group, *files)
	if no := c.SecurityContext.AllowPrivilegeEscalation; no != nil && !*no {
		script += " --no-new-privs"
	}
	if len(c.SecurityContext.Capabilities.Drop) > 0 {
		script += " --inh-caps -all --bounding-set -all"
	}
	// chroot comes first, by who may do it; setpriv is this computer's in the image, too.
	script = strings.Replace(script, "exec setpriv", "exec chroot \"$0\" setpriv", 1) + " -- \"$@\"\n"
	p.enter = []string{"sh", "-c", script, k.image}
	return p
}

// literalOrName matches what Kubernetes replaces in a value.
var literalOrName = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// environment is that of a container: what its image has, what Kubernetes adds, and the manifest's.
func (k *kubelet) environment(spec *podSpec, name string, index int) []string {
	k.t.Helper()
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		k.t.Error("the pods have variables of all services of their namespace")
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "HOSTNAME=" + name}
	values := map[string]string{}
	for _, v := range spec.Containers[0].Env {
		value := literalOrName.ReplaceAllStringFunc(v.Value, func(s string) string {
			if s == "$$" {
				return "$"
			}
			if earlier, ok := values[strings.Trim(s, "$()")]; ok {
				return earlier
			}
			return s
		})
		if from := v.ValueFrom; from != nil {
			value = k.secret(from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		}
		values[v.Name] = value
		env = append(env, v.Name+"="+value)
	}
	return append(env, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
}

// secret is a value of the manifest's Secret.
func (k *kubelet) secret(name, key string) string {
	k.t.Helper()
	s := k.objects["Secret"]
	value, ok := s.StringData[key]
	if !ok || name != s.Metadata.Name {
		k.t.Fatalf("there is no %s in a secret %s", key, name)
	}
	return value
}

// volume makes the folder of a volume. Projected files are root's, and those of the pod's group,
// behind links by which all of them change at once.
func (k *kubelet) volume(v *podVolume, group int) (dir string) {
	k.t.Helper()
	dir = k.t.TempDir()
	err := errors.Join(os.Chown(dir, 0, group), os.Chmod(dir, 0o777|os.ModeSetgid))
	if v.Projected == nil {
		if v.EmptyDir == nil {
			k.t.Fatalf("volume %s is of no sort that is known here", v.Name)
		}
		if err != nil {
			k.t.Fatal(err)
		}
		return dir
	}
	const now = "..2026_11_27"
	put := func(path, content string) {
		at := filepath.Join(dir, now, path)
		top, _, _ := strings.Cut(path, "/")
		err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600), //nolint:gosec // as Kubernetes has it
			os.Chown(at, 0, group), os.Chmod(at, v.Projected.DefaultMode))
		if e := os.Symlink("..data/"+top, filepath.Join(dir, top)); !errors.Is(e, os.ErrExist) {
			err = errors.Join(err, e)
		}
	}
	for _, s := range v.Projected.Sources {
		for _, i := range s.Secret.Items {
			put(i.Path, k.secret(s.Secret.Name, i.Key))
		}
		if s.ConfigMap.Name == "" {
			continue
		}
		c := k.objects["ConfigMap"]
		if c.Metadata.Name != s.ConfigMap.Name {
			k.t.Fatalf("there is no ConfigMap %s", s.ConfigMap.Name)
		}
		for name, text := range c.Data {
			put(name, text)
		}
	}
	if err = errors.Join(err, os.Symlink(now, filepath.Join(dir, "..data"))); err != nil {
		k.t.Fatal(err)
	}
	return dir
}

// in is a command in the container of a pod.
func (p *pod) in(t *testing.T, words []string) *exec.Cmd {
	t.Helper()
	skips.ProgramOf(t, "setpriv", "util-linux")
	cmd := p.machine.Command(t.Context(), p.enter[0], slices.Concat(p.enter[1:], words)...)
	cmd.Env = p.env
	return cmd
}

// start starts the container.
func (p *pod) start(t *testing.T) *machineNode {
	t.Helper()
	n := &machineNode{cmd: p.in(t, p.command)}
	n.start(t, "pod "+p.name)
	return n
}

// ready asks the container's probe.
func (p *pod) ready(t *testing.T) (status int, text string) {
	t.Helper()
	cmd := p.in(t, p.probe)
	b, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(b)
}
