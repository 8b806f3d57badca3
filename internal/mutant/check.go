package mutant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Check returns the type errors of the module at root with all faults of a list. It checks only the
// packages that have faults and links nothing, so it takes seconds.
func Check(ctx context.Context, root string, list []Mutant) error {
	files, err := InsertMutants(list, func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	})
	if err != nil {
		return err
	}
	woven := map[string][]string{} // by folder: files that are changed or new
	for name := range files {
		woven[path.Dir(name)] = append(woven[path.Dir(name)], path.Base(name))
	}
	if len(woven) == 0 {
		return nil
	}
	packages, err := listPackages(ctx, root, slices.Collect(maps.Keys(woven)))
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	set := token.NewFileSet()
	var found []error
	config := types.Config{
		Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }),
		Error:    func(err error) { found = append(found, err) },
	}
	checked := 0
	for _, p := range packages {
		dir, err := filepath.Rel(root, p.Dir)
		if dir = filepath.ToSlash(dir); err != nil || woven[dir] == nil {
			continue
		}
		checked++
		var syntax []*ast.File
		names := slices.Concat(p.GoFiles, woven[dir])
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			text, changed := files[path.Join(dir, name)]
			if !changed {
				if text, err = os.ReadFile(filepath.Join(p.Dir, name)); err != nil {
					return err
				}
			}
			f, err := parser.ParseFile(set, path.Join(dir, name), text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			syntax = append(syntax, f)
		}
		_, _ = config.Check(p.ImportPath, set, syntax, nil) // config.Error gets the errors
	}
	if checked != len(woven) {
		return fmt.Errorf("%w: go list knows %d of the %d folders that have faults", ErrList, checked, len(woven))
	}
	return errors.Join(found...)
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// importPath is that of the package in a folder, by the go.mod that is nearest above it: go list
// knows folders of the module at root by their names, but not those of a module inside of it.
func importPath(root, dir string) (string, error) {
	for above := dir; ; above = path.Dir(above) {
		text, err := os.ReadFile(filepath.Join(root, above, "go.mod"))
		if errors.Is(err, fs.ErrNotExist) && above != "." {
			continue
		}
		if err != nil {
			return "", err
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(string(text), "module "), "\n")
		below, err := filepath.Rel(above, dir)
		return path.Join(name, filepath.ToSlash(below)), err
	}
}

// listPackages returns the packages in folders of the module at root, or of one inside of it, and
// all that they import. Export is the file with the compiler's export data of a package, which is
// made if it is not in the cache.
func listPackages(ctx context.Context, root string, dirs []string) (all []listed, err error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "os", "strconv"} // those of switchFile, too
	for _, dir := range dirs {
		at, err := importPath(root, dir)
		if err != nil {
			return nil, err
		}
		args = append(args, at)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}
