package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

const maxSlots = 1 << 20

// MaxHostFile is the maximum size in bytes of a file of machines, which that of the largest site
// does not reach.
const MaxHostFile = 16 << 20

// ReadHostFile reads a file of machines as users of MPICH (node1:4) and Open MPI (node1 slots=4)
// write it; see ParseHostFile. By hand: no library reads either, and a file may mix the two.
func ReadHostFile(path string) ([]Machine, error) {
	b, err := plainfile.ReadPipe(path, MaxHostFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of machines: %w", err)
	}
	return ParseHostFile(path, bytes.NewReader(b))
}

var equals = regexp.MustCompile(`\s*=\s*`)

// ParseHostFile reads machines, one per line: a name or an address, optionally after a user and an
// @, and the number of procs after a colon or as slots=. # begins a comment. A machine that is
// listed again has more procs. If no number is given, Tasks of a machine is 0, or how often it is
// listed if that is more than once. Options of other MPIs that do not matter here are ignored.
// Errors begin with path, the file's name, and the line.
func ParseHostFile(path string, r io.Reader) ([]Machine, error) {
	var list hosts
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(equals.ReplaceAllString(text, "="))
		if len(fields) == 0 {
			continue
		}
		m, err := parseHost(fields[0])
		for _, field := range fields[1:] {
			if err == nil {
				err = m.option(field)
			}
		}
		if err == nil {
			err = list.add(m)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(list.list) == 0 {
		return nil, fmt.Errorf("%s: it names no machine: write one in each line, as in: node1 slots=4", path)
	}
	return list.machines(), nil
}

// ParseHosts reads the argument of -host: names or addresses separated by commas, each with a
// number of procs after a colon if there are more than one.
func ParseHosts(text string) ([]Machine, error) {
	var list hosts
	for word := range strings.SplitSeq(text, ",") {
		m, err := parseHost(strings.TrimSpace(word))
		if err == nil {
			m.slots = max(m.slots, 1)
			err = list.add(m)
		}
		if err != nil {
			return nil, fmt.Errorf("list of machines %q: %w", text, err)
		}
	}
	return list.machines(), nil
}

// host is a machine in a list. slots is 0 if it is not given.
type host struct {
	name, user string
	slots      int
	times      int
}

// parseHost reads user@name:slots. An IPv6 address must be in brackets if slots follow it.
func parseHost(word string) (h host, err error) {
	if before, after, found := strings.Cut(word, "@"); found {
		if h.user, word = before, after; h.user == "" {
			return h, fmt.Errorf("there is no user before the @ of %q", "@"+word)
		}
	}
	h.name = word
	if inside, after, found := strings.Cut(strings.TrimPrefix(word, "["), "]"); found && word[0] == '[' {
		h.name = inside
		if after != "" {
			err = h.count(strings.TrimPrefix(after, ":"))
		}
	} else if before, after, found := strings.Cut(word, ":"); found && !strings.Contains(after, ":") {
		h.name = before
		err = h.count(after)
	}
	if err == nil && (h.name == "" || strings.HasPrefix(h.name, "-") || strings.HasPrefix(h.user, "-") || strings.ContainsAny(h.name, "[]=,/'\"\\;&|$`()<>*?!{}~")) {
		err = fmt.Errorf("%q is no name of a machine: write a name or an address, and the number of procs as in %s", word, "node1 slots=4")
	}
	if _, notAddress := netip.ParseAddr(h.name); err == nil && notAddress != nil && numeric(h.name) {
		err = fmt.Errorf("%q is neither an address nor a name: the four numbers of an address are at most 255", h.name)
	}
	return h, err
}

// numeric reports whether a name with a dot ends in a number, as addresses do and names do not.
func numeric(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	return dot >= 0 && dot+1 < len(name) && strings.Trim(name[dot+1:], "0123456789") == ""
}

func (h *host) count(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxSlots {
		return fmt.Errorf("%s: %q is no number of procs: write one from 1 to %d", h.name, text, maxSlots)
	}
	h.slots = n
	return nil
}

func (h *host) option(field string) error {
	key, value, found := strings.Cut(field, "=")
	if !found {
		return fmt.Errorf("%s: %q is not understood: write slots=NUMBER, or one machine in each line", h.name, field)
	}
	switch strings.ReplaceAll(key, "-", "_") {
	case "slots", "cpu", "cpus", "count":
		return h.count(value)
	case "user", "username":
		h.user = value
	case "max_slots", "binding", "bind", "ifname", "sockets", "cores":
	default:
		return fmt.Errorf("%s: there is no option %q: slots, max_slots and user are known", h.name, key)
	}
	return nil
}

// hosts are machines in the order in which they were first named.
type hosts struct {
	list []*host
	of   map[string]*host
}

func (l *hosts) add(h host) error {
	if l.of == nil {
		l.of = map[string]*host{}
	}
	known := l.of[h.name]
	if known == nil {
		if len(l.list) == maxMachines {
			return tooMany()
		}
		known = &host{name: h.name, user: h.user}
		l.of[h.name] = known
		l.list = append(l.list, known)
	}
	if known.user != h.user {
		return fmt.Errorf("%s is there for two users, %q and %q", h.name, known.user, h.user)
	}
	if known.times > 0 && (known.slots == 0) != (h.slots == 0) { // the line without a number counts as one proc
		known.slots, h.slots = max(known.slots, known.times), max(h.slots, 1)
	}
	known.slots += h.slots
	known.times++
	if known.slots > maxSlots {
		return fmt.Errorf("%s has more than %d procs", h.name, maxSlots)
	}
	return nil
}

func (l *hosts) machines() []Machine {
	machines := make([]Machine, len(l.list))
	for i, h := range l.list {
		tasks := h.slots
		if tasks == 0 && h.times > 1 {
			tasks = h.times
		}
		machines[i] = Machine{Name: h.name, User: h.user, Tasks: tasks}
	}
	return machines
}
