package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/openimpi/impi/internal/hcldepth"
)

// ErrNoSites is the error that SiteNames returns for a file without site blocks.
var ErrNoSites = errors.New("the job file has no site blocks")

// SiteNames returns the names of a job file's own sites, in the order of the file, even if the file
// has other faults.
func SiteNames(path string) ([]string, error) {
	b, err := readText(path, maxJobFile)
	if err != nil {
		return nil, fmt.Errorf("read the job file: %w", err)
	}
	d := &decoder{faults: &faults{file: path}, src: newSource(b), env: environment(os.Environ())}
	if at, deep := hcldepth.TooDeep(d.src.text, path); deep {
		return nil, fmt.Errorf("read the job file: %v: it is nested too deep", at)
	}
	parsed, diags := hclparse.NewParser().ParseHCL(d.src.text, path)
	if diags.HasErrors() {
		return nil, fmt.Errorf("read the job file: %w", diags)
	}
	var names []string
	for _, block := range parsed.Body.(*hclsyntax.Body).Blocks {
		if block.Type != "site" || len(block.Labels) != 1 {
			continue
		}
		if a := block.Body.Attributes["foreign"]; a != nil && d.attribute(a, attrSpec{name: a.Name, kind: truth()}).v == true {
			continue
		}
		d.list = nil // faults of the attribute foreign do not matter here
		label, ok := d.label(block)
		if !ok {
			return nil, fmt.Errorf("read the job file: %w", d.list.Err())
		}
		names = append(names, label)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNoSites)
	}
	return names, nil
}

// members returns the sites that have procs in the job from its start: all but spare ones.
func members(b *builder) (list []*siteDraft) { return without(b.sites) }

func ourMembers(b *builder) (list []*siteDraft) { return without(b.ours()) }

func without(all []*siteDraft) (list []*siteDraft) {
	for _, s := range all {
		if !s.Spare {
			list = append(list, s)
		}
	}
	return list
}

// checkSpare reports what a spare site cannot have. It gives spare sites the client rank -1, and
// reports that another site has none.
func checkSpare(s *siteDraft) {
	in := s.block
	if !s.Spare {
		if !in.has("client") {
			s.fault(in.pos, in.title()+" has no client", "add client = 0")
		}
		return
	}
	s.Client, s.ranks = -1, false
	who := "site " + quote(s.Name) + " is spare"
	for _, x := range []struct{ name, problem, remedy string }{
		{"client", "is no client of the job from its start", "remove client, or spare = true"},
		{"foreign", "another MPI cannot wait for spawned procs", "remove foreign, or spare = true"},
		{"server_foreign", "a server of another MPI knows no spare sites", "remove server_foreign, or spare = true"},
	} {
		if in.has(x.name) && in.values[x.name].v != false {
			s.fault(in.at(x.name), who+": "+x.problem, x.remedy)
		}
	}
	for _, x := range []struct{ name, problem, remedy string }{
		{"embedded_server", "the job begins without it, and so does its server", "move the block into another site, or into the job block"},
		{NativeName, "the MPI that it has of its own cannot add procs", "remove the block, or spare = true"},
		{"launch", "its machines are not started with the job", "remove the block, and run impi-node on each of its machines"},
	} {
		if b := in.only(x.name); b != nil {
			s.fault(b.pos, who+": "+x.problem, x.remedy)
		}
	}
}

func checkSpares(b *builder) {
	for _, s := range b.sites {
		if !s.Spare {
			continue
		}
		at := s.block.at("spare")
		for _, x := range members(b) {
			switch {
			case x.Foreign:
				b.fault(at, "site "+quote(x.Name)+" runs another MPI, and so the job's sites have no secret by which a spare site could be known", "remove spare, or site "+quote(x.Name))
			case x.Server.Foreign:
				b.fault(at, "the job's server is another MPI's, which knows no spare sites", "remove spare, or server_foreign")
			}
		}
		if s.Server.Embedded || b.result.Complete && len(members(b)) == 0 {
			b.fault(at, "all sites of the job are spare, so that nobody could spawn procs there", "remove spare from one of them")
		}
	}
}
