package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openimpi/impi/config"
)

// part is one program of the flag -programs.
type part struct {
	Procs   int               `json:"procs"`
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"dir"`
	Out     string            `json:"out"` // file for standard output, %r is the rank
	Err     string            `json:"err"` // and for standard error
}

// readParts parses the value of -programs: a JSON list.
func readParts(text string) (parts []config.Part, err error) {
	var list []part
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf(`-programs: %w; it is a list like [{"procs": 2, "command": ["./prog"]}]`, err)
	}
	for _, p := range list {
		parts = append(parts, config.Part{Procs: p.Procs, Program: config.Program{
			Command: p.Command, Env: p.Env, Dir: p.Dir, OutFile: p.Out, ErrFile: p.Err,
		}})
	}
	return parts, nil
}
