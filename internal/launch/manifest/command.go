package manifest

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
)

// Help is what impi-node manifest -h prints.
//
//go:embed help.txt
var Help string

// ErrUsage is wrapped by errors of command lines.
var ErrUsage = errors.New("see impi-node manifest -h")

// Command prints the manifest that a command line asks for. load reads a job file whose hosts are on
// other machines; it shows its faults itself, and gives nil then.
func Command(args []string, out io.Writer, load func(path string) *config.Job) error {
	f := flag.NewFlagSet("manifest", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	var o Options
	f.StringVar(&o.Image, "image", "", "")
	f.StringVar((*string)(&o.Driver), "driver", string(Docker), "")
	f.BoolVar(&o.Secrets, "secrets", false, "")
	f.Func("secret-variable", "", func(name string) error {
		o.SecretVariables = append(o.SecretVariables, name)
		return nil
	})
	site := f.String("site", "", "")
	memory := f.String("memory", "", "")
	words, err := cmdline.ParseMixed(f, args)
	kinds := map[string]func(*config.Job, config.Site, Options) ([]byte, error){"kubernetes": Kubernetes, "nomad": Nomad}
	switch {
	case err != nil:
		return fmt.Errorf("%w; %w", err, ErrUsage)
	case len(words) > 0 && kinds[words[0]] == nil:
		return fmt.Errorf("%q is no kind of manifest: there are kubernetes and nomad; %w", words[0], ErrUsage)
	case len(words) != 2:
		return fmt.Errorf("give kubernetes or nomad, and one job file; %w", ErrUsage)
	case !slices.Contains([]Driver{Docker, Exec, RawExec}, o.Driver):
		return fmt.Errorf("-driver %q: Nomad's drivers here are docker, exec and raw_exec; %w", o.Driver, ErrUsage)
	case o.Driver != Docker && words[0] != "nomad":
		return fmt.Errorf("-driver %s is for nomad: Kubernetes has containers only; %w", o.Driver, ErrUsage)
	case o.Driver != Docker && o.Image != "":
		return fmt.Errorf("-image %s: the driver %s starts what is installed on Nomad's clients, and no image; %w", o.Image, o.Driver, ErrUsage)
	case strings.ContainsAny(o.Image, " \t\n\""):
		return fmt.Errorf("-image %q is no name of an image, as registry.example/ring:1 is; %w", o.Image, ErrUsage)
	case o.Image == "" && o.Driver == Docker:
		return fmt.Errorf("-image is missing: the containers' image, which has impi-node and the program; %w", ErrUsage)
	}
	if o.Memory, err = size(*memory); err != nil {
		return err
	}
	job := load(words[1])
	if job == nil {
		return ErrUsage
	}
	s, err := choose(job, *site)
	if err != nil {
		return err
	}
	text, err := kinds[words[0]](job, s, o)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// choose returns the site of that name, or the only one of ours.
func choose(job *config.Job, name string) (config.Site, error) {
	var names []string
	sites := slices.DeleteFunc(slices.Clone(job.Sites), func(s config.Site) bool { return s.Foreign || name != "" && s.Name != name })
	if len(sites) == 1 {
		return sites[0], nil
	}
	for _, s := range job.Sites {
		if !s.Foreign {
			names = append(names, s.Name)
		}
	}
	if name != "" {
		return config.Site{}, fmt.Errorf("%s has no site %q that runs impi; it has %s", job.File, name, strings.Join(names, ", "))
	}
	return config.Site{}, fmt.Errorf("%s has the sites %s: name one with -site", job.File, strings.Join(names, ", "))
}

// leastMemory is less than what any proc needs: what is below is a typing mistake.
const leastMemory = 16 << 20

// size parses a number of bytes, as Kubernetes has it.
func size(text string) (int64, error) {
	const most = 1 << 50
	if text == "" {
		return DefaultMemory, nil
	}
	digits, shift := text, 0
	for suffix, bits := range map[string]int{"Ki": 10, "Mi": 20, "Gi": 30} {
		if before, found := strings.CutSuffix(text, suffix); found {
			digits, shift = before, bits
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > most>>shift || n<<shift < leastMemory {
		return 0, fmt.Errorf("-memory %s: write a number of bytes, at least 16Mi, such as 512Mi or 2Gi", text)
	}
	return n << shift, nil
}
