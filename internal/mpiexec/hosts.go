package mpiexec

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// hostFile reads a file of hosts. Its slots count for nothing: a machine has as
// many procs as are asked for.
func (p *parser) hostFile(name string) error {
	text, err := p.machine.Read(name)
	if err != nil {
		return err
	}
	line := 0
	for text := range strings.Lines(text) {
		line++
		text, _, _ = strings.Cut(text, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if err := p.host(fields[0]); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return nil
}

// host checks one host, which may have a number of slots behind a colon.
func (p *parser) host(word string) error {
	name := word
	if before, slots, found := strings.Cut(word, ":"); found && !strings.Contains(slots, ":") {
		name = before
	}
	if p.machine.Local(strings.Trim(name, "[]")) {
		return nil
	}
	return fmt.Errorf("%s is not this machine. A job on several machines has a site on each, and impi-node runs there: see impi-node help site, and docs/config.md", name)
}

// ThisMachine is the machine that the process runs on. Names are compared, not
// looked up.
func ThisMachine() Machine {
	return Machine{
		Getenv: os.LookupEnv,
		Read: func(file string) (string, error) {
			b, err := os.ReadFile(file)
			return string(b), err
		},
		Local: func(host string) bool {
			if a, err := netip.ParseAddr(host); err == nil {
				return a.IsLoopback() || hasAddress(a)
			}
			name, err := os.Hostname()
			short, _, _ := strings.Cut(name, ".")
			return host == "localhost" || host == "localhost.localdomain" || err == nil && (host == name || host == short)
		},
	}
}

// hasAddress tells whether an interface of this machine has the address.
func hasAddress(want netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == want.Unmap() {
			return true
		}
	}
	return false
}
