package distribution

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openimpi/impi/internal/pluginlock"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// writeLayout writes an OCI layout of the files in a folder. An existing layout is extended: its
// other contents stay.
func writeLayout(at string, from *folder, list []published) error {
	root, err := makeLayout(at)
	if err != nil {
		return fmt.Errorf("the OCI layout %s: %w", at, err)
	}
	defer root.Close()
	w := layoutWriter{put: func(file string, size int64, in io.Reader) error { return putBlob(root, file, size, in) }}
	manifests := map[string]map[string][]ocispec.Descriptor{} // manifests of platforms, by name and version
	for _, b := range list {
		layers, err := putLayers(&w, from, &b)
		if err != nil {
			return fmt.Errorf("the OCI layout %s: %w", at, err)
		}
		d, err := w.manifest(b.Platform, layers)
		if err != nil {
			return fmt.Errorf("the OCI layout %s: %w", at, err)
		}
		if manifests[b.Name] == nil {
			manifests[b.Name] = map[string][]ocispec.Descriptor{}
		}
		manifests[b.Name][b.Version] = append(manifests[b.Name][b.Version], d)
	}
	var releases []ocispec.Descriptor
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		for _, version := range slices.Sorted(maps.Keys(manifests[name])) {
			d, err := w.release(name, version, manifests[name][version])
			if err != nil {
				return fmt.Errorf("the OCI layout %s: %w", at, err)
			}
			releases = append(releases, d)
		}
	}
	if err := replaceIndex(at, releases); err != nil {
		return fmt.Errorf("the OCI layout %s: %w", at, err)
	}
	return nil
}

func putLayers(w *layoutWriter, from *folder, b *published) (list []ocispec.Descriptor, err error) {
	put := func(file, mediaType string, size int64, sum string) error {
		in, err := from.open(context.Background(), file)
		if err != nil {
			return err
		}
		defer in.Close()
		d := ocispec.Descriptor{MediaType: mediaType, Size: size, Annotations: map[string]string{ocispec.AnnotationTitle: file}}
		d.Digest = digestOf(sum)
		list = append(list, d)
		at, err := blob(d)
		if err != nil {
			return err
		}
		return w.put(at, size, in)
	}
	if err := put(b.File, binaryType, b.Size, b.SHA256); err != nil || b.Signature == "" {
		return list, err
	}
	text, err := from.read(b.Signature, maxSignature)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return list, put(b.Signature, signatureType, int64(len(text)), hex.EncodeToString(sum[:]))
}

func makeLayout(at string) (*os.Root, error) {
	if err := os.MkdirAll(filepath.Join(at, ocispec.ImageBlobsDir, "sha256"), 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(at, ocispec.ImageLayoutFile)
	if _, err := os.Stat(file); err != nil {
		text, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
		if err == nil {
			err = pluginlock.Replace(file, text)
		}
		if err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(at)
}

// putBlob writes a blob, unless it is there. It checks that its contents are what its name says.
func putBlob(root *os.Root, file string, size int64, in io.Reader) error {
	if info, err := root.Stat(file); err == nil && info.Size() == size {
		return nil
	}
	partial := filepath.Join(filepath.Dir(file), pluginlock.Temporary+filepath.Base(file))
	out, err := root.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	if err = errors.Join(err, out.Close()); err == nil && hex.EncodeToString(sum.Sum(nil)) != filepath.Base(file) {
		err = fmt.Errorf("%s changed while it was read", file)
	}
	if err == nil {
		err = root.Rename(partial, file)
	}
	if err != nil {
		return errors.Join(err, root.Remove(partial))
	}
	return nil
}

// replaceIndex writes index.json with releases, which replace those of the same name; its other
// contents stay.
func replaceIndex(at string, releases []ocispec.Descriptor) error {
	x := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	file := filepath.Join(at, ocispec.ImageIndexFile)
	switch in, err := plainfile.Open(file); {
	case err == nil:
		text, err := readAll(in, file, maxIndex)
		in.Close()
		if err == nil {
			err = json.Unmarshal(text, &x)
		}
		if err != nil {
			return err
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	x.Manifests = slices.DeleteFunc(x.Manifests, func(d ocispec.Descriptor) bool {
		return slices.ContainsFunc(releases, func(r ocispec.Descriptor) bool {
			return r.Annotations[ocispec.AnnotationRefName] == d.Annotations[ocispec.AnnotationRefName]
		})
	})
	x.Manifests = append(x.Manifests, releases...)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(x); err != nil {
		return err
	}
	return pluginlock.Replace(file, text.Bytes())
}

type layoutWriter struct {
	put func(file string, size int64, from io.Reader) error
}

func (w *layoutWriter) json(v any, mediaType string) (d ocispec.Descriptor, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return d, err
	}
	d = ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	file, err := blob(d)
	if err == nil {
		err = w.put(file, d.Size, strings.NewReader(string(text)))
	}
	return d, err
}

func (w *layoutWriter) manifest(platform string, layers []ocispec.Descriptor) (ocispec.Descriptor, error) {
	empty := ocispec.DescriptorEmptyJSON
	file, _ := blob(empty)
	if err := w.put(file, empty.Size, strings.NewReader("{}")); err != nil {
		return empty, err
	}
	d, err := w.json(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType, Config: empty, Layers: layers,
	}, ocispec.MediaTypeImageManifest)
	system, arch, _ := strings.Cut(platform, "_")
	d.Platform = &ocispec.Platform{OS: system, Architecture: arch}
	d.ArtifactType = artifactType
	return d, err
}

func (w *layoutWriter) release(name, version string, platforms []ocispec.Descriptor) (ocispec.Descriptor, error) {
	d, err := w.json(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, ArtifactType: artifactType, Manifests: platforms,
		Annotations: map[string]string{ocispec.AnnotationTitle: name, ocispec.AnnotationVersion: version},
	}, ocispec.MediaTypeImageIndex)
	d.ArtifactType = artifactType
	d.Annotations = map[string]string{ocispec.AnnotationRefName: pluginlock.FilePrefix + name + "-" + version}
	return d, err
}

func digestOf(sum string) digest.Digest { return digest.NewDigestFromEncoded(digest.SHA256, sum) }
