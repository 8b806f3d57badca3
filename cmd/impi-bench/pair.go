package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// runPair starts two processes of this program and returns the first one's figures.
// args are for process 0 and 1; ends are their descriptor 3, and are closed here.
func runPair(ctx context.Context, args [2][]string, ends [2]*os.File, environment ...string) ([]figure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var cmds [2]*exec.Cmd
	for i, end := range ends {
		cmds[i] = exec.CommandContext(ctx, self, args[i]...)
		cmds[i].Stderr = os.Stderr
		cmds[i].Env = append(os.Environ(), environment...)
		if end != nil {
			cmds[i].ExtraFiles = []*os.File{end}
			defer end.Close()
		}
	}
	if err := cmds[1].Start(); err != nil {
		return nil, err
	}
	cmds[0].Stderr = nil
	list, err := figures(cmds[0])
	if err != nil {
		_ = cmds[1].Process.Kill()
	}
	return list, errors.Join(err, cmds[1].Wait())
}
