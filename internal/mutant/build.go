package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// build makes programs, and the tests of a package, of the module at root with all faults of a
// list, each with its switch, and puts them into the folder dir, which also gets what the build
// needs.
func build(ctx context.Context, root, dir string, list []Mutant, programs []string, tests string) error {
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	files, err := InsertMutants(list, func(name string) ([]byte, error) { return os.ReadFile(at(name)) })
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for name, text := range files {
		other := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[at(name)] = other
		if err := os.WriteFile(other, text, 0o666); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o666); err != nil {
		return err
	}
	if len(programs) > 0 {
		err = goTool(ctx, root, append([]string{"build", "-overlay", file, "-o", dir + string(filepath.Separator)}, programs...)...)
	}
	if err == nil && tests != "" {
		err = goTool(ctx, root, "test", "-c", "-vet=off", "-overlay", file, "-o", filepath.Join(dir, "tests"), tests)
	}
	return err
}

func goTool(ctx context.Context, root string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return nil
}
