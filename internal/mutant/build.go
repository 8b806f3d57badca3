package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// build makes programs of the module at root with all faults of a list, each with
// its switch, and puts them into the folder dir, which also gets what the build needs.
func build(ctx context.Context, root, dir string, list []Mutant, packages []string) error {
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	files, err := Weave(list, func(name string) ([]byte, error) { return os.ReadFile(at(name)) })
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
	args := []string{"build", "-overlay", file, "-o", dir + string(filepath.Separator)}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
