package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/matrix"
)

// kept returns the results of earlier runs in a file, in their order, with the new ones.
func kept(file string, results []matrix.Result) (all []matrix.Result, err error) {
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("-keep %s: %w", file, err)
	}
	all = merged(all, results)
	if b, err = json.MarshalIndent(all, "", "  "); err != nil {
		return nil, err
	}
	return all, os.WriteFile(file, b, 0o644)
}

// merged returns results with newer ones, which take the places of those of the same cells.
func merged(all, newer []matrix.Result) []matrix.Result {
	for _, r := range newer {
		i := slices.IndexFunc(all, func(x matrix.Result) bool { return x.Cell == r.Cell })
		if i < 0 {
			all = append(all, r)
			continue
		}
		all[i] = r
	}
	return all
}

// withThoseOf returns the results that are in files, as JSON or as a page, with the new ones.
func withThoseOf(files []string, results []matrix.Result) (all []matrix.Result, err error) {
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("-from: %w", err)
		}
		var list []matrix.Result
		if strings.HasSuffix(file, ".md") {
			list, err = matrix.ReadTable(string(b))
		} else {
			err = json.Unmarshal(b, &list)
		}
		if err != nil {
			return nil, fmt.Errorf("-from %s: %w", file, err)
		}
		all = merged(all, list)
	}
	return merged(all, results), nil
}
