package distribution

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The same binaries make the same index, and a layout keeps what others have put into it.
func TestPublish(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here, "plan9_arm")
	m.release("0.9.0", here)
	layout := filepath.Join(t.TempDir(), "layout")
	read := func() string {
		t.Helper()
		m.publish("-oci", layout)
		a, err := os.ReadFile(filepath.Join(m.dir, IndexName))
		b, err2 := os.ReadFile(filepath.Join(layout, ocispec.ImageIndexFile))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return string(a) + string(b)
	}
	first := read()
	if read() != first {
		t.Error("the second time it is another one")
	}
	write(t, filepath.Join(layout, ocispec.ImageIndexFile), `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:00","size":2,"annotations":{"org.opencontainers.image.ref.name":"app"}}]}`, 0o644)
	if again := read(); !strings.Contains(again, `"app"`) {
		t.Errorf("the layout's other image is gone\n%s", again)
	}
	x, err := ParseIndex([]byte(first[:strings.Index(first, "\n}\n")+3]))
	if err != nil || len(x.Plugins["ofi"]) != 2 || len(x.Plugins["ofi"]["1.2.3"]) != 2 {
		t.Errorf("%v, %+v", err, x)
	}
	if status, _, errs := run(t, "install", "-config", job(t, "oci:"+layout, "0.9.0", m.keys())); status != 0 {
		t.Errorf("status %d\n%s", status, errs)
	}
}

func TestPublishFaults(t *testing.T) {
	elf, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make func(m *maker)
		want string
	}{
		"nothing":       {func(*maker) {}, "has no plugins: name them"},
		"another name":  {func(m *maker) { write(m.T, filepath.Join(m.dir, "impi-transport-ofi"), "x", 0o755) }, "impi-transport-ofi: name it impi-transport-NAME_VERSION_OS_ARCH"},
		"another form":  {func(m *maker) { m.binary("1.2", here, "x") }, "name it"},
		"two faults":    {func(m *maker) { m.binary("1.2", here, "x"); m.binary("1.2.3", here, "x") }, "has no signature"},
		"empty":         {func(m *maker) { m.binary("1.2.3", here, "") }, "it has 0 bytes"},
		"another key":   {func(m *maker) { m.release("1.2.3", here); m.newKey() }, "signed by the key"},
		"another file":  {func(m *maker) { m.release("1.2.3", here); m.binary("1.2.3", here, "x") }, "the file or the signature was changed"},
		"another chip":  {func(m *maker) { m.sign(m.binary("1.2.3", "linux_s390x", string(elf))) }, "and its name says s390x"},
		"a wrong value": {func(m *maker) { m.release("1.2.3", here); m.public = "RWQ" }, `the key "RWQ"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaker(t)
			c.make(m)
			status, _, errs := run(t, "publish", "-key", m.public, m.dir)
			if status != statusBad || !strings.Contains(errs, c.want) {
				t.Errorf("status %d, want %q in\n%s", status, c.want, errs)
			}
			if _, err := os.Stat(filepath.Join(m.dir, IndexName)); err == nil {
				t.Error("there is an index")
			}
		})
	}
}

// A layout that is damaged, or made to be read for ever, is refused.
func TestBadLayouts(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	for name, c := range map[string]struct {
		change func(t *testing.T, layout string)
		want   string
	}{
		"no layout": {func(t *testing.T, at string) { os.Remove(filepath.Join(at, ocispec.ImageLayoutFile)) }, "is not an OCI layout"},
		"of another version": {func(t *testing.T, at string) {
			write(t, filepath.Join(at, ocispec.ImageLayoutFile), `{"imageLayoutVersion":"2.0.0"}`, 0o644)
		}, `its version is "2.0.0"`},
		"a digest that leads out": {func(t *testing.T, at string) {
			index(t, at, func(d *ocispec.Descriptor) { d.Digest = "sha256:../../../../etc/passwd" })
		}, "is not one of SHA-256"},
		"a blob that is changed": {func(t *testing.T, at string) {
			index(t, at, func(d *ocispec.Descriptor) {
				write(t, filepath.Join(at, "blobs", "sha256", d.Digest.Encoded()), "{}", 0o644)
			})
		}, "the layout is damaged"},
		"a huge blob": {func(t *testing.T, at string) {
			index(t, at, func(d *ocispec.Descriptor) {
				write(t, filepath.Join(at, "blobs", "sha256", d.Digest.Encoded()), strings.Repeat(" ", maxManifest+1), 0o644)
			})
		}, "too many"},
		"more manifests than fit": {func(t *testing.T, at string) {
			var x ocispec.Index
			text, _ := os.ReadFile(filepath.Join(at, ocispec.ImageIndexFile))
			_ = json.Unmarshal(text, &x)
			for range maxManifests {
				x.Manifests = append(x.Manifests, x.Manifests[0])
			}
			text, _ = json.Marshal(x)
			write(t, filepath.Join(at, ocispec.ImageIndexFile), string(text), 0o644)
		}, "more than 10000 manifests"},
		"one platform alone": {func(t *testing.T, at string) {
			index(t, at, func(d *ocispec.Descriptor) { *d = firstOf(t, at, *d) })
		}, "skopeo copy --all"},
	} {
		t.Run(name, func(t *testing.T) {
			layout := filepath.Join(t.TempDir(), "layout")
			m.publish("-oci", layout)
			c.change(t, layout)
			refused(t, job(t, "oci:"+layout, "", m.keys()), c.want)
		})
	}
}

// A layout may list the parts of a plugin for each platform beside the index that has them.
func TestLayoutWithPlatforms(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	layout := filepath.Join(t.TempDir(), "layout")
	m.publish("-oci", layout)
	file := filepath.Join(layout, ocispec.ImageIndexFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var x ocispec.Index
	if err := json.Unmarshal(text, &x); err != nil {
		t.Fatal(err)
	}
	x.Manifests = append([]ocispec.Descriptor{firstOf(t, layout, x.Manifests[0])}, x.Manifests...)
	if text, err = json.Marshal(x); err != nil {
		t.Fatal(err)
	}
	write(t, file, string(text), 0o644)
	if status, _, errs := run(t, "install", "-config", job(t, "oci:"+layout, "", m.keys())); status != 0 {
		t.Errorf("status %d\n%s", status, errs)
	}
}

// firstOf returns the manifest of the first platform in an index.
func firstOf(t *testing.T, layout string, d ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", d.Digest.Encoded()))
	if err != nil {
		t.Fatal(err)
	}
	var x ocispec.Index
	if err := json.Unmarshal(text, &x); err != nil || len(x.Manifests) == 0 {
		t.Fatalf("%v in %s", err, text)
	}
	return x.Manifests[0]
}

// index changes the first descriptor of a layout's index.
func index(t *testing.T, at string, change func(*ocispec.Descriptor)) {
	t.Helper()
	file := filepath.Join(at, ocispec.ImageIndexFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var x ocispec.Index
	if err := json.Unmarshal(text, &x); err != nil || len(x.Manifests) == 0 {
		t.Fatal(err)
	}
	change(&x.Manifests[0])
	if text, err = json.Marshal(x); err != nil {
		t.Fatal(err)
	}
	write(t, file, string(text), 0o644)
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(`{"format":1,"plugins":{"ofi":{"1.2.3":{"linux_amd64":{"file":"x","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}}}}}`))
	f.Add([]byte(`{"format":1,"plugins":{"../x":{"1":{"":{"file":"../x"}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := ParseIndex(text)
		if err != nil {
			return
		}
		for name, p := range x.Plugins {
			for version, r := range p {
				for platform, b := range r {
					if all := name + version + platform + b.File + b.Signature; strings.Contains(b.File, "..") && strings.Contains(b.File, "../") || strings.ContainsAny(all, "\\\x00%?#") || bytes.HasPrefix([]byte(b.File), []byte("/")) {
						t.Errorf("accepted %q", all)
					}
				}
			}
		}
	})
}
