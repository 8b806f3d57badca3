package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

type target struct {
	pkg  string // its folder, relative to the working directory
	dir  string
	name string
}

func (t target) String() string { return t.pkg + "." + t.name }

type listed struct {
	Dir                       string
	TestGoFiles, XTestGoFiles []string
}

var function = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

func list(patterns []string, only string) ([]target, error) {
	want, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var targets []target
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return targets, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		found, err := p.targets()
		if err != nil {
			return nil, err
		}
		targets = append(targets, slices.DeleteFunc(found, func(t target) bool { return !want.MatchString(t.String()) })...)
	}
}

func (p *listed) targets() (targets []target, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	pkg, err := filepath.Rel(here, p.Dir)
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		text, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return nil, err
		}
		for _, m := range function.FindAllSubmatch(text, -1) {
			targets = append(targets, target{pkg, p.Dir, string(m[1])})
		}
	}
	return targets, nil
}
