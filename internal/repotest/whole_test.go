package repotest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// root is the folder with go.mod above the working folder.
func root(t *testing.T) fs.FS {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return os.DirFS(dir)
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

func TestRepository(t *testing.T) {
	r, err := Read(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Go) < 50 {
		t.Fatalf("only %d Go files were found", len(r.Go))
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, p := range Sorted(rule.Check(r)) {
				t.Error(p)
			}
		})
	}
}

// read parses a repository that consists of files.
func read(t *testing.T, files map[string]string) *Repo {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r, err := Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReadLeavesOutWhatIsNotOurs(t *testing.T) {
	r := read(t, map[string]string{
		".gitignore":                  "/bin/\n*.prof\n",
		".git/config":                 "x",
		".ci/run":                     "echo",
		"bin/x.go":                    "package x",
		"core/a/a.go":                 "package a",
		"core/a/testdata/broken.go":   "package",
		"examples/vendor/go.mod":      "module other",
		"examples/vendor/a/vendor.go": "package vendor",
		"picture.png":                 "\x89PNG\x00",
	})
	if len(r.Go) != 1 || r.Go[0].Path != "core/a/a.go" || r.Go[0].Dir != "core/a" {
		t.Errorf("Go files %v", r.Go)
	}
	if len(r.Top) != 2 || r.Top[0] != "core" || r.Top[1] != "examples" {
		t.Errorf("folders %v", r.Top)
	}
	for _, text := range r.Texts {
		if text.Path == "picture.png" || text.Path == "bin/x.go" || text.Path == ".git/config" {
			t.Errorf("read %s", text.Path)
		}
	}
	if len(r.Texts) != 6 {
		t.Errorf("%d texts", len(r.Texts))
	}
}

func TestReadReportsBrokenGo(t *testing.T) {
	_, err := Read(fstest.MapFS{"a.go": {Data: []byte("package")}})
	if err == nil {
		t.Error("no error")
	}
}
