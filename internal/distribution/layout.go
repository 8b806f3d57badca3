package distribution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The types of a plugin's parts in a layout: an image index for each version, in it a manifest for
// each platform, in it the binary and its signature.
const (
	artifactType  = "application/vnd.openimpi.plugin.v1"
	binaryType    = "application/vnd.openimpi.plugin.binary.v1"
	signatureType = "application/vnd.openimpi.plugin.minisig.v1"
)

// The bounds of a layout.
const (
	maxManifest  = 1 << 20 // bytes
	maxManifests = 10000
)

type layout struct {
	*folder
	manifests int // number of manifests read
}

func (l *layout) check() error {
	var about ocispec.ImageLayout
	text, err := l.read(ocispec.ImageLayoutFile, maxManifest)
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err == nil && about.Version != ocispec.ImageLayoutVersion {
		err = fmt.Errorf("its version is %q, and this impi-node reads %s", about.Version, ocispec.ImageLayoutVersion)
	}
	return err
}

func (l *layout) index(context.Context) (*Index, error) {
	text, err := l.read(ocispec.ImageIndexFile, maxIndex)
	if err != nil {
		return nil, err
	}
	var all ocispec.Index
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s/%s: %w", l.path, ocispec.ImageIndexFile, err)
	}
	x := &Index{Format: Format, Plugins: map[string]Plugin{}}
	within := map[digest.Digest]bool{} // manifests of platforms that a release has
	for _, d := range all.Manifests {
		if d.MediaType != ocispec.MediaTypeImageIndex {
			continue // another object has a place in the layout
		}
		var release ocispec.Index
		if err := l.manifest(d, &release); err != nil {
			return nil, err
		}
		if release.ArtifactType != artifactType {
			continue
		}
		name, version := release.Annotations[ocispec.AnnotationTitle], release.Annotations[ocispec.AnnotationVersion]
		if err := l.release(x, name, version, release.Manifests); err != nil {
			return nil, fmt.Errorf("%s: plugin %q, version %q: %w", l.path, name, version, err)
		}
		for _, platform := range release.Manifests {
			within[platform.Digest] = true
		}
	}
	return x, l.alone(all.Manifests, within)
}

// alone returns an error if one of the layout's images is the part of a plugin for one platform,
// without what says which plugin and version it is.
func (l *layout) alone(list []ocispec.Descriptor, within map[digest.Digest]bool) error {
	for _, d := range list {
		var m ocispec.Manifest
		if d.MediaType != ocispec.MediaTypeImageManifest || within[d.Digest] || l.manifest(d, &m) != nil { // another's image may be incomplete
			continue
		}
		if m.ArtifactType == artifactType {
			return fmt.Errorf("%s: %s is a plugin for one platform, without the index that has its name and version; copy it to the layout again with all its platforms: skopeo copy --all, or oras copy --to-oci-layout without --platform",
				l.path, d.Digest)
		}
	}
	return nil
}

func (l *layout) release(x *Index, name, version string, platforms []ocispec.Descriptor) error {
	r := Release{}
	for _, d := range platforms {
		var m ocispec.Manifest
		if err := l.manifest(d, &m); err != nil {
			return err
		}
		if d.Platform == nil {
			return errors.New("a manifest has no platform")
		}
		platform := d.Platform.OS + "_" + d.Platform.Architecture
		var b Binary
		for _, layer := range m.Layers {
			file, err := blob(layer)
			switch {
			case err != nil:
				return err
			case layer.MediaType == binaryType:
				b.File, b.Size, b.SHA256 = file, layer.Size, layer.Digest.Encoded()
			case layer.MediaType == signatureType:
				b.Signature = file
			}
		}
		if err := b.check(name, version, platform); err != nil {
			return fmt.Errorf("platform %q: %w", platform, err)
		}
		r[platform] = b
	}
	if x.Plugins[name] == nil {
		x.Plugins[name] = Plugin{}
	}
	x.Plugins[name][version] = r
	return nil
}

func blob(d ocispec.Descriptor) (string, error) {
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return "", fmt.Errorf("the digest %.100q is not one of SHA-256", d.Digest)
	}
	return path.Join(ocispec.ImageBlobsDir, digest.SHA256.String(), d.Digest.Encoded()), nil
}

// manifest reads a blob of JSON, and checks its digest. A library for layouts would read manifests
// of any size.
func (l *layout) manifest(d ocispec.Descriptor, to any) error {
	if l.manifests++; l.manifests > maxManifests {
		return fmt.Errorf("the layout has more than %d manifests", maxManifests)
	}
	file, err := blob(d)
	if err != nil {
		return err
	}
	text, err := l.read(file, maxManifest)
	switch {
	case err != nil:
		return err
	case digest.FromBytes(text) != d.Digest:
		return fmt.Errorf("%s/%s: its SHA-256 is not its name: the layout is damaged", l.path, file)
	}
	return json.Unmarshal(text, to)
}
