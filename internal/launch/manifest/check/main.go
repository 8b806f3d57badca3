//go:build manifests

// Command check reads manifests as the schedulers do that take them: with the types of their APIs,
// in which no field may be unknown. Those types have many dependencies, so they are in a file of
// their own, check.mod: go build -modfile=check.mod -tags manifests .
//
// Usage: check kubernetes|nomad < MANIFEST
//
// It prints the objects as JSON, an array of them, with all that the types have filled in.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/nomad/api"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

func main() {
	objects, err := check(os.Args[1:], os.Stdin)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(objects)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(args []string, in io.Reader) ([]any, error) {
	switch {
	case len(args) == 1 && args[0] == "kubernetes":
		return kubernetes(in)
	case len(args) == 1 && args[0] == "nomad":
		return nomad(in)
	}
	return nil, errors.New("usage: check kubernetes|nomad < MANIFEST")
}

func kubernetes(in io.Reader) (objects []any, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(in))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		var kind meta.TypeMeta
		if err == nil {
			err = strict.Unmarshal(text, &kind)
		}
		if err != nil {
			return nil, err
		}
		o, ok := map[string]meta.Object{
			"v1 ConfigMap": &core.ConfigMap{}, "v1 Secret": &core.Secret{}, "v1 Service": &core.Service{}, "batch/v1 Job": &batch.Job{},
		}[kind.APIVersion+" "+kind.Kind]
		if !ok {
			return nil, fmt.Errorf("an object is %q", kind)
		}
		if err := strict.UnmarshalStrict(text, o); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
		if faults := validation.IsDNS1123Label(o.GetName()); len(faults) > 0 {
			return nil, fmt.Errorf("%s %s: %v", kind.Kind, o.GetName(), faults)
		}
		objects = append(objects, o)
	}
}

// nomad decodes a job as nomad job run -json does, but strictly.
func nomad(in io.Reader) ([]any, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	var request struct{ Job *api.Job }
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return nil, err
	}
	if request.Job == nil || request.Job.ID == nil {
		return nil, errors.New("there is no job with an ID")
	}
	request.Job.Canonicalize()
	return []any{request.Job}, nil
}
