package sim

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/line"
	"github.com/openimpi/impi/internal/sim/script"
)

type siteLine struct {
	Hosts []int
	startup.Params
	NoDirect   bool
	NoOnDemand bool
	Prefer     []string
	Secret     bool
	Data       string
	Slots      int
	Late       time.Duration
	Together   bool
	IsForeign  bool `line:"foreign"`
	job.Foreign
}

func (l *siteLine) site() job.Site {
	s := job.Site{Hosts: l.Hosts, Params: l.Params, NoDirect: l.NoDirect, NoOnDemand: l.NoOnDemand, Prefer: l.Prefer, Secret: l.Secret, Data: l.Data, Slots: l.Slots, Late: l.Late, Together: l.Together}
	if l.IsForeign {
		s.Foreign = &l.Foreign
	}
	return s
}

func lineOfSite(s *job.Site) string {
	l := siteLine{Hosts: s.Hosts, Params: s.Params, NoDirect: s.NoDirect, NoOnDemand: s.NoOnDemand, Prefer: s.Prefer, Secret: s.Secret, Data: s.Data, Slots: s.Slots, Late: s.Late, Together: s.Together, IsForeign: s.Foreign != nil}
	if s.Params == (startup.Params{}) {
		l.Params = startup.DefaultParams()
	}
	if s.Foreign != nil {
		l.Foreign = *s.Foreign
	}
	return line.Write("site", l, siteLine{Params: startup.DefaultParams()})
}

func (c *Case) links() (names []string, specs []*kernel.LinkSpec) {
	v := reflect.ValueOf(&c.Links).Elem()
	for i := range v.NumField() {
		names = append(names, strings.ToLower(v.Type().Field(i).Name))
		specs = append(specs, v.Field(i).Addr().Interface().(*kernel.LinkSpec))
	}
	return names, specs
}

// String formats the case for Parse: the job, the faults and then the program. Defaults are left
// out.
func (c *Case) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n%s\n", c.Seed, line.Write("job", *c, Case{}))
	if c.Resume != nil {
		fmt.Fprintln(&b, line.Write("resume", *c.Resume, job.Resume{}))
	}
	if c.Firewall != nil {
		fmt.Fprintln(&b, line.Write("firewall", *c.Firewall, job.Firewall{}))
	}
	names, specs := c.links()
	for i, s := range specs {
		if *s != (kernel.LinkSpec{}) {
			fmt.Fprintln(&b, line.Write("link "+names[i], *s, kernel.LinkSpec{}))
		}
	}
	for i := range c.Sites {
		fmt.Fprintln(&b, lineOfSite(&c.Sites[i]))
	}
	for i := range c.Spares {
		fmt.Fprintln(&b, line.Write("spare", c.Spares[i], Spare{}))
	}
	for _, f := range c.Faults {
		fmt.Fprintf(&b, "fault %v\n", f)
	}
	if c.Program != nil {
		b.WriteString(c.Program.String())
	}
	return b.String()
}

// Parse parses the output of String, in any order of the lines of the job and the program. Empty
// lines, lines that begin with # and what follows a # and a space are ignored.
func Parse(text string) (*Case, error) {
	c, err := read(text)
	if err != nil {
		return nil, err
	}
	return c, c.Check()
}

// read is Parse without the checks.
func read(text string) (*Case, error) {
	c := &Case{}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		l, _, _ = strings.Cut(l, "# ")
		words := strings.Fields(l)
		if len(words) == 0 {
			continue
		}
		ours, err := c.line(words[0], words[1:])
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %s: %w", ErrCase, i+1, words[0], err)
		}
		if ours {
			lines[i] = "" // so that later lines keep their numbers
		}
	}
	var err error
	if c.Program, err = script.Parse(strings.Join(lines, "\n")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCase, err)
	}
	return c, nil
}

func (c *Case) line(verb string, words []string) (ours bool, err error) {
	switch verb {
	case "seed":
		var first struct {
			N uint64 `line:"@"`
		}
		err = line.Read(words, &first)
		c.Seed = first.N
	case "job":
		err = line.Read(words, c)
	case "resume":
		c.Resume = &job.Resume{}
		err = line.Read(words, c.Resume)
	case "firewall":
		c.Firewall = &job.Firewall{}
		err = line.Read(words, c.Firewall)
	case "link":
		names, specs := c.links()
		for i, name := range names {
			if len(words) > 0 && words[0] == name {
				return true, line.Read(words[1:], specs[i])
			}
		}
		err = fmt.Errorf("there is no such link: write one of %s", strings.Join(names, " "))
	case "site":
		l := siteLine{Params: startup.DefaultParams()}
		err = line.Read(words, &l)
		c.Sites = append(c.Sites, l.site())
	case "spare":
		var s Spare
		err = line.Read(words, &s)
		c.Spares = append(c.Spares, s)
	case "fault":
		var f job.Fault
		f, err = job.ParseFault(strings.Join(words, " "))
		c.Faults = append(c.Faults, f)
	default:
		return false, nil
	}
	return true, err
}

func (c *Case) checkNumbers() error {
	chances := []float64{c.DialFail}
	least := []int{c.Chunk, c.Backlog, c.Silent}
	if c.Resume != nil {
		chances, least = append(chances, c.Resume.Cuts, c.Resume.Parts), append(least, c.Resume.Window-1)
	}
	if c.Firewall != nil {
		least = append(least, c.Firewall.Host)
	}
	_, specs := c.links()
	for _, s := range specs {
		chances, least = append(chances, s.Chop, s.Lend, s.Reset), append(least, s.Capacity)
	}
	for _, s := range c.Spares {
		chances, least = append(chances, s.Fails), append(least, s.Slots)
	}
	for _, p := range chances {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%w: %v is no chance, which is from 0 to 1", ErrCase, p)
		}
	}
	for _, s := range c.Sites {
		least = append(least, s.Slots)
	}
	for _, n := range least {
		if n < 0 || n > 1<<30 {
			return errors.Join(ErrCase, errors.New("the chunk, the window, the backlog, the silent connections, slots, the host of a firewall or a capacity is too small or too large"))
		}
	}
	return nil
}
