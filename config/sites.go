package config

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// ErrNoSites is reported by SiteNames for a file without any.
var ErrNoSites = errors.New("the job file has no site blocks")

// SiteNames returns the names of a job file's sites that are ours, in the order of the
// file, whatever else may be wrong with it.
func SiteNames(path string) ([]string, error) {
	b, err := readText(path, maxJobFile)
	if err != nil {
		return nil, fmt.Errorf("read the job file: %w", err)
	}
	text := newSource(b).text
	if at, deep := tooDeep(text, path); deep {
		return nil, fmt.Errorf("read the job file: %v: it is nested too deep", at)
	}
	parsed, diags := hclparse.NewParser().ParseHCL(text, path)
	if diags.HasErrors() {
		return nil, fmt.Errorf("read the job file: %w", diags)
	}
	var names []string
	for _, block := range parsed.Body.(*hclsyntax.Body).Blocks {
		if block.Type != "site" || len(block.Labels) != 1 {
			continue
		}
		if !foreign(block.Body.Attributes["foreign"]) {
			names = append(names, block.Labels[0])
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNoSites)
	}
	return names, nil
}

// foreign reports whether an attribute, if there is one, says yes.
func foreign(a *hclsyntax.Attribute) bool {
	if a == nil {
		return false
	}
	v, diags := a.Expr.Value(nil)
	return !diags.HasErrors() && v.Type() == cty.Bool && v.IsKnown() && !v.IsNull() && v.True()
}
