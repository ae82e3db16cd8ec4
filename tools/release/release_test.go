package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// copyTree copies what git knows of the repository, or would, into a directory.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", from, "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // deleted since
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The tree as it is can be released: from an empty module the libraries and the commands are installed by a
// version, without any replace directive.
func TestAReleaseCanBeInstalled(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long, and scripts/release itself, prove that a release can be installed")
	}
	temp := t.TempDir()
	tree, proxy := filepath.Join(temp, "tree"), filepath.Join(temp, "proxy")
	copyTree(t, "../..", tree)
	const version = "v0.1.0-proof.1"
	if err := prepare(tree, proxy, version); err != nil {
		t.Fatal(err)
	}
	for _, m := range released {
		mod, err := os.ReadFile(filepath.Join(tree, string(m), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(mod), "replace") || strings.Contains(string(mod), "v0.0.0-00010101000000") {
			t.Errorf("%s of the release:\n%s", m.path(), mod)
		}
	}
	if err := prove(t.Context(), proxy, filepath.Join(temp, "proof"), version); err != nil {
		t.Fatal(err)
	}
}

// A tree whose modules are not prepared cannot be installed: the proof sees it.
func TestTheProofSeesAReplace(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long, and scripts/release itself, prove that a release can be installed")
	}
	temp := t.TempDir()
	tree, proxy := filepath.Join(temp, "tree"), filepath.Join(temp, "proxy")
	copyTree(t, "../..", tree)
	const version = "v0.1.0-proof.2"
	for _, m := range released {
		if _, err := publish(proxy, m, filepath.Join(tree, string(m)), version); err != nil {
			t.Fatal(err)
		}
	}
	if err := prove(t.Context(), proxy, filepath.Join(temp, "proof"), version); err == nil {
		t.Fatal("modules with replace directives were installed")
	}
}

func TestVersionsAndChanges(t *testing.T) {
	for version, good := range map[string]bool{"v0.1.0": true, "v1.2.3-rc.1": true, "0.1.0": false, "v0.1": false, "v2.0.0": false, "v0.1.0+x": false} {
		if err := checkVersion(version); (err == nil) != good {
			t.Errorf("%s: %v", version, err)
		}
	}
	for changes, good := range map[string]bool{
		"# Changelog\n\n## 0.1.0 - 2026-01-31\n":                          true,
		"# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-01-31\n":         true,
		"# Changelog\n\n## Unreleased\n":                                  false,
		"# Changelog\n\n## 0.1.0\n":                                       false,
		"# Changelog\n\n## 0.2.0 - 2026-02-01\n\n## 0.1.0 - 2026-01-31\n": false,
	} {
		if err := checkChanges(changes, "v0.1.0"); (err == nil) != good {
			t.Errorf("%q: %v", changes, err)
		}
	}
}

func TestTags(t *testing.T) {
	if got := strings.Join(tags("v0.1.0"), " "); got != "v0.1.0 rationprom/v0.1.0 rationotel/v0.1.0 cmd/v0.1.0" {
		t.Error(got)
	}
}

// The pages of a published version name it, and no clone.
func TestPagesAreTurned(t *testing.T) {
	page := "Before.\n\n<!-- until released -->\nUse a\nclone.\n<!-- /until released -->\n\n<!-- released: one; two -->\n```sh\ngit clone x\n\ncd x\n```\n\n" +
		"<!-- released: three -->\n<!-- run: skip, why -->\n```sh\nfour\n```\nAfter.\n"
	skip := "<!-- run: skip, since a test's module has no network -->\n"
	want := "Before.\n\n" + skip + "```sh\none\ntwo\n```\n\n" + skip + "```sh\nthree\n```\nAfter.\n"
	if got := turnPage(page); got != want {
		t.Errorf("%q instead of %q", got, want)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	turned := turnPage(string(readme))
	if !strings.Contains(turned, "\ngo run github.com/ration-go/ration/cmd/crawler-demo@latest\n") || strings.Contains(turned, "git clone") || strings.Contains(turned, "released") {
		t.Error(turned)
	}
}
