package rammerc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// What a release is made of exists, and the image is built with the Go that go.mod asks for.
func TestReleaseFiles(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var release struct {
		Builds []struct {
			Main         string
			Env          []string
			Goos, Goarch []string
		}
		Archives []struct{ Files []string }
	}
	if err := yaml.Unmarshal([]byte(read(".goreleaser.yaml")), &release); err != nil {
		t.Fatal(err)
	}
	if len(release.Builds) != 1 || len(release.Archives) != 1 {
		t.Fatalf("%+v", release)
	}
	if b := release.Builds[0]; strings.Join(b.Env, " ") != "CGO_ENABLED=0" || len(b.Goos)*len(b.Goarch) != 4 {
		t.Errorf("binaries are not static, or not for all systems: %+v", b)
	}
	for _, pattern := range append(release.Archives[0].Files, release.Builds[0].Main) {
		if found, err := filepath.Glob(strings.ReplaceAll(pattern, "**/", "")); err != nil || len(found) == 0 {
			t.Errorf("%s: there is no such file", pattern)
		}
	}
	version, _, _ := strings.Cut(strings.SplitAfter(read("go.mod"), "\ngo ")[1], "\n")
	if !strings.Contains(read("Dockerfile"), "ARG GO="+strings.TrimSuffix(version, ".0")+"\n") {
		t.Errorf("the Dockerfile does not build with Go %s", version)
	}
	if !strings.Contains(read("CHANGELOG.md"), "\n## Unreleased\n") {
		t.Error("CHANGELOG.md has no part for what comes next")
	}
}
