package manifest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"github.com/openimpi/impi/config"
)

// user is the ID of the user in containers, who is not root. The Dockerfile has the same.
const user = 65532

//go:embed kubernetes.yaml
var kubernetesText string

var kubernetesTemplate = template.Must(template.New("kubernetes").Funcs(template.FuncMap{"q": quote, "lines": lines, "literal": literal}).Parse(kubernetesText))

type kubernetes struct {
	site

	Service   string // the headless service, whose name is the first label of the hosts' domain
	Namespace string // the second label; "" if the names have no more
}

// Secret reports whether the job has any secrets.
func (k kubernetes) Secret() bool {
	return len(k.Files) > 0 || slices.ContainsFunc(k.Vars, func(v variable) bool { return v.Secret })
}

// User returns the number of the user in containers.
func (kubernetes) User() int { return user }

// Bytes returns the memory of a container in bytes.
func (k kubernetes) Bytes() string { return strconv.FormatInt(k.Memory*int64(k.Procs), 10) }

// Kubernetes returns the objects that run a site of a job in a cluster, as YAML: a ConfigMap with
// the job file, a Secret with the keys that it names, a headless Service and an Indexed Job. Hosts
// must have the names of a Job's pods: JOB-INDEX.SERVICE, optionally followed by the namespace.
func Kubernetes(job *config.Job, s config.Site, o Options) ([]byte, error) {
	d, err := describe(job, s, o)
	if err != nil {
		return nil, err
	}
	k := kubernetes{site: d}
	var rest string
	k.Service, rest, _ = strings.Cut(d.Domain, ".")
	k.Namespace, rest, _ = strings.Cut(rest, ".")
	last := d.Job + "-" + strconv.Itoa(d.Hosts-1)
	for _, label := range []string{last, k.Service, k.Namespace} {
		if label != "" && (len(label) > 63 || !dnsLabel.MatchString(label)) {
			return nil, fmt.Errorf("site %s: %q cannot be a name in Kubernetes: write small letters, digits and hyphens, 63 at most", s.Name, label)
		}
	}
	if k.Namespace != "" && rest != "svc" && !strings.HasPrefix(rest, "svc.") {
		return nil, fmt.Errorf("site %s: hosts of the domain %s are none of Kubernetes: write hosts = %q, or with .NAMESPACE.svc behind it", s.Name, d.Domain, fmt.Sprintf("%s-[0-%d].%s", d.Job, d.Hosts-1, k.Service))
	}
	var b bytes.Buffer
	if err := kubernetesTemplate.Execute(&b, k); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// dnsLabel is a name of RFC 1123, as Kubernetes wants them.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// literal writes the value of a variable so that Kubernetes, which replaces $(NAME), leaves it
// unchanged.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }

// quote writes a text for YAML as a JSON string, which YAML understands.
func quote(text string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// lines writes a text of several lines so that people can read it, as a value in a mapping that is
// indented by two blanks; otherwise as quote.
func lines(text string) (string, error) {
	odd := func(r rune) bool { return r != '\n' && (r == '\t' || !unicode.IsPrint(r)) }
	if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") || strings.HasPrefix(text, "\n") || strings.ContainsFunc(text, odd) {
		return quote(text)
	}
	return "|2\n    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    "), nil
}
