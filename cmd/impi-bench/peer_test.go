package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeerInFolder runs a peer of a folder, whose tools do as if: the compiler makes a
// program that says how it was called, and the launcher runs it.
func TestPeerInFolder(t *testing.T) {
	folder, dir := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"mpicc":   "#!/bin/sh\nprintf '#!/bin/sh\\necho \"{\\\\\"size\\\\\": 8, \\\\\"iterations\\\\\": $#, \\\\\"seconds\\\\\": 1}\"\\n' >\"$3\" && chmod +x \"$3\"\n",
		"mpiexec": "#!/bin/sh\nshift 2\nexec \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, "bin", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := parsed(t, "-quiet", "-peer", "mpich="+folder, "pingpong", "spawn")
	p, err := o.newPeer(context.Background(), o.peers[0], dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, bench := range o.benches { // neither is done by another installation
		list, err := p.run(context.Background(), bench, []int{8, 64})
		if err != nil || len(list) != 1 || list[0].Iterations != 4 {
			t.Errorf("%s: %+v, %v", bench, list, err)
		}
	}
	_, err = o.newPeer(context.Background(), "mpich="+dir, dir)
	if err == nil || !strings.Contains(err.Error(), "=FOLDER") {
		t.Errorf("a folder without an MPI: %v", err)
	}
}
