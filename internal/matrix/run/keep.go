package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

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
	for _, r := range results {
		i := slices.IndexFunc(all, func(x matrix.Result) bool { return x.Cell == r.Cell })
		if i < 0 {
			all = append(all, r)
			continue
		}
		all[i] = r
	}
	if b, err = json.MarshalIndent(all, "", "  "); err != nil {
		return nil, err
	}
	return all, os.WriteFile(file, b, 0o644)
}
