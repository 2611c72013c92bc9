package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// It is built without the flags of a release, so that it takes what the other tests have compiled.
func TestAReleaseHoldsWhatItsManifestSays(t *testing.T) {
	here := runtime.GOOS + "/" + runtime.GOARCH
	r := release{Version: "v0.0.1", URL: "https://downloads.acme.example/v0.0.1", root: filepath.Join("..", ".."), out: t.TempDir()}
	if err := r.make(t.Context(), []string{here}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, manifest))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind string
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got.Kind != "Plugin" || got.Spec.Version != "v0.0.1" || len(got.Spec.Platforms) != 1 {
		t.Fatalf("manifest:\n%s", text)
	}
	p := got.Spec.Platforms[0]
	if want := map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH}; cmp.Diff(want, p.Selector.MatchLabels) != "" {
		t.Errorf("selector %v, want %v", p.Selector.MatchLabels, want)
	}
	name, found := strings.CutPrefix(p.URI, r.URL+"/")
	if !found {
		t.Fatalf("uri %s", p.URI)
	}
	archive, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != p.SHA256 {
		t.Errorf("sha256 %s is not that of the archive", p.SHA256)
	}
	folder := t.TempDir()
	files := unpack(t, archive, folder)
	if diff := cmp.Diff([]string{p.Bin, "kubectl_complete-stepbeyond", "LICENSE"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	output, err := exec.CommandContext(t.Context(), filepath.Join(folder, p.Bin), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(output), program+" ") {
		t.Errorf("version: %v\n%s", err, output)
	}
}

// unpack writes the files of an archive into a folder and gives their names.
func unpack(t *testing.T, archive []byte, folder string) []string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, header.Name), text, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func TestAReleaseWithoutVersionOrPlaceIsNotMade(t *testing.T) {
	for want, r := range map[string]release{
		`-version: "1.2" is not of the form v1.2.3`:             {Version: "1.2", URL: "https://a.example"},
		`-url: "http://a.example" does not begin with https://`: {Version: "v1.2.3", URL: "http://a.example"},
		`-platforms: "linux" is not of the form linux/amd64`:    {Version: "v1.2.3", URL: "https://a.example"},
	} {
		r.out = t.TempDir()
		if err := r.make(t.Context(), []string{"linux"}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
