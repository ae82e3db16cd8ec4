package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const library = "github.com/ration-go/ration"

// A releasedModule is one that is released, by its directory; "": the library.
type releasedModule string

// released are the modules that are released, each behind those that it requires.
var released = []releasedModule{"", "rationprom", "rationotel", "cmd"}

func (m releasedModule) path() string { return path.Join(library, string(m)) }

func (m releasedModule) tag(version string) string { return path.Join(string(m), version) }

// prepare has the modules in a tree require each other at a version, and lays them out in a directory as a
// module proxy has them.
func prepare(tree, proxy, version string) error {
	var sums []string // of those before
	for _, m := range released {
		dir := filepath.Join(tree, string(m))
		if err := requireReleased(filepath.Join(dir, "go.mod"), version); err != nil {
			return err
		}
		if err := addSums(filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum"), sums); err != nil {
			return err
		}
		own, err := publish(proxy, m, dir, version)
		if err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		sums = append(sums, own...)
	}
	return nil
}

// requireReleased has a go.mod require the released modules at a version, and replace none.
func requireReleased(name, version string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(file.Replace) {
		if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	for _, r := range file.Require {
		if isReleased(r.Mod.Path) {
			if err := file.AddRequire(r.Mod.Path, version); err != nil {
				return err
			}
		} else if strings.HasPrefix(r.Mod.Path, library) {
			return fmt.Errorf("%s requires %s, which is not released", name, r.Mod.Path)
		}
	}
	file.Cleanup()
	data, err = file.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

func isReleased(path string) bool {
	return slices.ContainsFunc(released, func(m releasedModule) bool { return m.path() == path })
}

// addSums adds the sums of the released modules that a go.mod requires to its go.sum.
func addSums(mod, sum string, sums []string) error {
	text, err := os.ReadFile(mod)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(sum)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	for _, line := range sums {
		if path, _, _ := strings.Cut(line, " "); strings.Contains(string(text), path+" v") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return os.WriteFile(sum, []byte(strings.Join(lines, "")), 0o644)
}

// publish writes a module's files into a proxy's directory, and returns its lines for go.sum.
func publish(proxy string, m releasedModule, dir, version string) (sums []string, err error) {
	at := filepath.Join(proxy, filepath.FromSlash(m.path()), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromDir(&packed, module.Version{Path: m.path(), Version: version}, dir); err != nil {
		return nil, err
	}
	archive := filepath.Join(at, version+".zip")
	for name, data := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod, version + ".zip": packed.Bytes()} {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	whole, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	only, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(mod)), nil })
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s\n", m.path(), version, whole),
		fmt.Sprintf("%s %s/go.mod %s\n", m.path(), version, only),
	}, nil
}
