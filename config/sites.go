package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/openimpi/impi/internal/hcldepth"
)

// ErrNoSites is the error of SiteNames for a file without site blocks.
var ErrNoSites = errors.New("the job file has no site blocks")

// SiteNames returns the names of a job file's sites that are ours, in the order of the
// file, whatever else may be wrong with it.
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
