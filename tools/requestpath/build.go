package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// library is the module that is measured.
	library = "github.com/ration-go/ration"
	// tracePackage is the package of it, in the built program only, that records.
	tracePackage = "internal/requestpathtrace"
	// ownFiles has go list print the files of the library's packages, one a line.
	ownFiles = `{{if .Module}}{{if eq .Module.Path "` + library + `"}}` +
		`{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
)

//go:embed testdata/trace/trace.go
var traceSource []byte

//go:embed testdata/scenario/main.go
var scenarioSource []byte

// build builds the scenarios' program in temp and returns its path. An overlay tells the
// go command to read the rewritten files in place of the library's own, and those of two
// more packages: the library's directory, dir, stays as it is.
func build(ctx context.Context, dir, temp string) (string, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	listed, err := goCommand(ctx, root, "list", "-deps", "-f", ownFiles, ".")
	if err != nil {
		return "", err
	}
	paths := strings.Fields(listed)
	if len(paths) == 0 {
		return "", fmt.Errorf("%s is not the root of %s", root, library)
	}
	trace := filepath.Join(root, filepath.FromSlash(tracePackage))
	sources := map[string][]byte{
		filepath.Join(trace, "trace.go"):            traceSource,
		filepath.Join(trace, "scenario", "main.go"): scenarioSource,
	}
	for _, path := range paths {
		if sources[path], err = instrument(root, path); err != nil {
			return "", err
		}
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for path, source := range sources {
		instead := filepath.Join(temp, fmt.Sprintf("%d.go", len(overlay.Replace)))
		overlay.Replace[path] = instead
		if err := os.WriteFile(instead, source, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	config, program := filepath.Join(temp, "overlay.json"), filepath.Join(temp, "scenarios")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return "", err
	}
	_, err = goCommand(ctx, root, "build", "-overlay", config, "-o", program, "./"+tracePackage+"/scenario")
	return program, err
}

// goCommand runs the go command in dir and returns what it prints. Its error has what the
// command says of what is wrong.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("go %s: %w\n%s", args[0], err, exit.Stderr)
	}
	return string(out), err
}
