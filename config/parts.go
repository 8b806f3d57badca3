package config

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
)

// Part is a share of a site's procs that runs a program of its own.
type Part struct {
	Procs   int // number of procs, at least 1
	Program Program
}

// ProgramOf returns the program of one of the site's procs, counted from 0, and the
// number of its part; a site without parts has one.
func (s Site) ProgramOf(proc int) (p Program, part int) {
	for i, part := range s.Parts {
		if proc < part.Procs {
			return part.Program, i
		}
		proc -= part.Procs
	}
	return s.Program, 0
}

// DefaultParts is like Default for several programs: of each part it uses Procs and, of its
// program, Command, Env and Dir, which may be relative or empty. Ranks follow the order of the
// parts. The error names a program or folder that does not exist.
func DefaultParts(parts []Part, builtins []Builtin) (*Job, error) {
	total := 0
	for i, p := range parts {
		if p.Procs < 1 || len(p.Program.Command) == 0 {
			return nil, fmt.Errorf("program %d of %d: %d procs, command %q", i+1, len(parts), p.Procs, p.Program.Command)
		}
		total += p.Procs
	}
	if total == 0 {
		return nil, fmt.Errorf("no program: write it")
	}
	job := Default(total, parts[0].Program.Command, builtins)
	site := &job.Sites[0]
	for _, p := range parts {
		command := p.Program.Command
		dir := absolute(job.Dir, p.Program.Dir)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("there is no folder %q for %s to run in", dir, command[0])
		}
		path, problem, remedy := findCommand(dir, command[0], command[0])
		if problem != "" && dir != job.Dir {
			path, problem, remedy = findCommand(job.Dir, command[0], command[0])
		}
		if problem != "" {
			return nil, fmt.Errorf("%s: %s", problem, remedy)
		}
		site.Parts = append(site.Parts, Part{Procs: p.Procs, Program: Program{
			Command: slices.Clone(command), Path: path, Dir: dir, Env: maps.Clone(p.Program.Env),
			OutFile: p.Program.OutFile, ErrFile: p.Program.ErrFile, PrefixOutput: true,
		}})
	}
	site.Program = site.Parts[0].Program
	return job, nil
}

// On sets the machines of a job without a file: hosts become the hosts of its only site, whose
// nodes l starts. Hosts with names may have unknown addresses. The number of procs must be that of
// the job's programs.
func (j *Job) On(hosts []Host, l Launch) error {
	s := &j.Sites[0]
	wanted := s.Procs()
	s.Hosts, s.Launch = hosts, &l
	if s.Procs() != wanted {
		return fmt.Errorf("the machines have %d procs, and the programs %d", s.Procs(), wanted)
	}
	s.Server.Address = netip.AddrPortFrom(hosts[0].Address, 0)
	return nil
}
