package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

func tagOf(v int64) wire.Tag { return wire.Tag(v) }

// Parse reads what String writes, in any order of the lines of the job and the
// program. Empty lines, lines that begin with # and what follows a # and a space
// are ignored.
func Parse(text string) (*Case, error) {
	c := &Case{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line, _, _ = strings.Cut(line, "# ")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		read := c.reader(words[0])
		if read == nil {
			continue // of the program
		}
		if err := read(words[1:]); err != nil {
			return nil, fmt.Errorf("%w: line %d: %s: %w", ErrCase, i+1, words[0], err)
		}
		lines[i] = "" // so that lines keep their numbers
	}
	var err error
	if c.Program, err = script.Parse(strings.Join(lines, "\n")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCase, err)
	}
	return c, c.Check()
}

// reader gives what reads the rest of a line of the job.
func (c *Case) reader(verb string) func(words []string) error {
	switch verb {
	case "seed":
		return c.parseSeed
	case "job":
		return c.parseJob
	case "resume":
		return c.parseResume
	case "link":
		return c.parseLink
	case "site":
		return c.parseSite
	case "fault":
		return c.parseFault
	}
	return nil
}

func (c *Case) parseSeed(words []string) (err error) {
	if len(words) != 1 {
		return fmt.Errorf("one number is wanted")
	}
	c.Seed, err = strconv.ParseUint(words[0], 10, 64)
	return err
}

func (c *Case) parseJob(words []string) error {
	return pairs(words, func(key, value string) (err error) {
		switch key {
		case "key":
			c.Key, err = yesNo(value)
		case "direct":
			c.Direct, err = yesNo(value)
		case "dialfail":
			c.DialFail, err = chance(value)
		case "chunk":
			var n int64
			n, err = number(value, 0, 1<<30)
			c.Chunk = int(n)
		default:
			err = errUnknown
		}
		return err
	})
}

func (c *Case) parseResume(words []string) error {
	c.Resume = &job.Resume{}
	return pairs(words, func(key, value string) (err error) {
		switch key {
		case "window":
			var n int64
			n, err = number(value, 1, 1<<30)
			c.Resume.Window = int(n)
		case "again":
			c.Resume.Again, err = duration(value)
		case "limit":
			c.Resume.Limit, err = duration(value)
		case "cuts":
			c.Resume.Cuts, err = chance(value)
		default:
			err = errUnknown
		}
		return err
	})
}

func (c *Case) parseLink(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("its name is missing")
	}
	for _, l := range linkNames {
		if l.name != words[0] {
			continue
		}
		s := l.of(&c.Links)
		return pairs(words[1:], func(key, value string) (err error) {
			switch key {
			case "delay":
				s.Delay, err = duration(value)
			case "jitter":
				s.Jitter, err = duration(value)
			case "capacity":
				var n int64
				n, err = number(value, 1, 1<<30)
				s.Capacity = int(n)
			case "chop":
				s.Chop, err = chance(value)
			case "lend":
				s.Lend, err = chance(value)
			case "reset":
				s.Reset, err = chance(value)
			default:
				err = errUnknown
			}
			return err
		})
	}
	return fmt.Errorf("there is no link %q", words[0])
}

func (c *Case) parseSite(words []string) error {
	s := job.Site{Params: startup.DefaultParams()}
	err := pairs(words, func(key, value string) error {
		switch key {
		case "hosts":
			return parseHosts(&s, value)
		case "foreign":
			return parseForeign(&s, value)
		case "direct":
			direct, err := yesNo(value)
			s.NoDirect = !direct
			return err
		}
		for _, n := range paramNames {
			if n.name == key {
				v, err := number(value, -1, math.MaxUint32)
				n.set(&s.Params, v)
				return err
			}
		}
		return errUnknown
	})
	c.Sites = append(c.Sites, s)
	return err
}

func parseHosts(s *job.Site, value string) error {
	for _, word := range strings.Split(value, ",") {
		n, err := number(word, 1, 1<<20)
		if err != nil {
			return err
		}
		s.Hosts = append(s.Hosts, int(n))
	}
	return nil
}

func parseForeign(s *job.Site, value string) error {
	s.Foreign = &job.Foreign{}
	for _, word := range strings.Split(value, ",") {
		if err := parseManner(s.Foreign, word); err != nil {
			return err
		}
	}
	return nil
}

func parseManner(f *job.Foreign, word string) error {
	for _, m := range mannerNames {
		if m.name == word {
			*m.of(f) = true
			return nil
		}
	}
	what, label, _ := strings.Cut(word, ":")
	list := &f.Skip
	switch what {
	case "yes":
		return nil
	case "skip":
	case "extra":
		list = &f.Extra
	default:
		return fmt.Errorf("%q is not yes, eager, habits, falselen, skip:LABEL or extra:LABEL", word)
	}
	n, err := strconv.ParseUint(label, 0, 32)
	*list = append(*list, wire.Label(n))
	return err
}

func (c *Case) parseFault(words []string) error {
	f, err := job.ParseFault(strings.Join(words, " "))
	c.Faults = append(c.Faults, f)
	return err
}

var errUnknown = fmt.Errorf("no such key")

// pairs takes words apart that are key=value.
func pairs(words []string, take func(key, value string) error) error {
	var seen []string
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || slices.Contains(seen, key) {
			return fmt.Errorf("%q: write key=value, each once", word)
		}
		seen = append(seen, key)
		if err := take(key, value); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return nil
}

func yesNo(value string) (bool, error) {
	if value != "yes" && value != "no" {
		return false, fmt.Errorf("write yes or no")
	}
	return value == "yes", nil
}

func chance(value string) (float64, error) {
	p, err := strconv.ParseFloat(value, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("write a number from 0 to 1")
	}
	return p, nil
}

func duration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("write a duration like 1.5ms")
	}
	return d, nil
}

func number(value string, lowest, highest int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("write a number from %d to %d", lowest, highest)
	}
	return n, nil
}
