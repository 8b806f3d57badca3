package manifest

import (
	_ "embed"
	"errors"
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

// Command returns the command impi-node manifest. load reads a job file whose hosts are on other
// machines; it prints the faults of the file itself, and returns nil then.
func Command(load func(path string) *config.Job) *cmdline.Command {
	c := &cmdline.Command{Name: "manifest", Help: Help, Commands: []*cmdline.Command{
		command("kubernetes", load, Kubernetes), command("nomad", load, Nomad),
	}}
	c.Run = c.NeedsCommand
	return c
}

func command(kind string, load func(path string) *config.Job, write func(*config.Job, config.Site, Options) ([]byte, error)) *cmdline.Command {
	c := &cmdline.Command{Name: kind, Args: cmdline.File, Flags: cmdline.NewFlags()}
	o := Options{Driver: Docker, Memory: DefaultMemory}
	c.Flags.StringVar(&o.Image, "image", "", "")
	c.Flags.StringVar((*string)(&o.Driver), "driver", string(Docker), fmt.Sprintf("`%s|%s|%s`", Docker, Exec, RawExec))
	c.Flags.BoolVar(&o.Secrets, "secrets", false, "")
	c.Flags.Func("secret-variable", "", func(name string) error {
		o.SecretVariables = append(o.SecretVariables, name)
		return nil
	})
	c.Flags.Func("memory", "", func(text string) (err error) {
		o.Memory, err = size(text)
		return err
	})
	site := c.Flags.String("site", "", "")
	c.Check = func(args []string) error {
		switch {
		case !slices.Contains([]Driver{Docker, Exec, RawExec}, o.Driver):
			return fmt.Errorf("-driver %q: Nomad's drivers here are docker, exec and raw_exec", o.Driver)
		case o.Driver != Docker && kind != "nomad":
			return fmt.Errorf("-driver %s is for nomad: Kubernetes has containers only", o.Driver)
		case o.Driver != Docker && o.Image != "":
			return fmt.Errorf("-image %s: the driver %s starts what is installed on Nomad's clients, and no image", o.Image, o.Driver)
		case strings.ContainsAny(o.Image, " \t\n\""):
			return fmt.Errorf("-image %q is no name of an image, as registry.example/ring:1 is", o.Image)
		case o.Image == "" && o.Driver == Docker:
			return errors.New("-image is missing: the containers' image, which has impi-node and the program")
		}
		return cmdline.ExactArgs(1, "one job file")(args)
	}
	c.Run = func(args []string, out, _ io.Writer) (int, error) {
		job := load(args[0])
		if job == nil {
			return cmdline.StatusUsage, nil
		}
		s, err := choose(job, *site)
		if err != nil {
			return cmdline.StatusUsage, err
		}
		text, err := write(job, s, o)
		if err != nil {
			return cmdline.StatusUsage, err
		}
		_, err = out.Write(text)
		return 0, err
	}
	return c
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

// leastMemory is less than any proc needs: a smaller number is a typing mistake.
const leastMemory = 16 << 20

// size parses a number of bytes in the notation of Kubernetes.
func size(text string) (int64, error) {
	const most = 1 << 50
	digits, shift := text, 0
	for suffix, bits := range map[string]int{"Ki": 10, "Mi": 20, "Gi": 30} {
		if before, found := strings.CutSuffix(text, suffix); found {
			digits, shift = before, bits
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > most>>shift || n<<shift < leastMemory {
		return 0, errors.New("write a number of bytes, at least 16Mi, such as 512Mi or 2Gi")
	}
	return n << shift, nil
}
