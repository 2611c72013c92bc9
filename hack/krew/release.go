package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// Files of the repository that every archive holds beside the program.
var beside = []string{"config/krew/kubectl_complete-stepbeyond", "LICENSE"}

const (
	program  = "kubectl-stepbeyond"
	manifest = "stepbeyond.yaml"
)

var versionForm = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// platform is one archive.
type platform struct{ OS, Arch, Archive, Binary, SHA256 string }

// release is what the template of the manifest is filled with.
type release struct {
	Version   string
	URL       string
	Platforms []platform

	root, out string
	// flags and environment of go build, which make an archive depend on the commit alone.
	flags, environment []string
}

func (r *release) make(ctx context.Context, platforms []string) error {
	switch {
	case !versionForm.MatchString(r.Version):
		return fmt.Errorf("-version: %q is not of the form v1.2.3", r.Version)
	case !strings.HasPrefix(r.URL, "https://"):
		return fmt.Errorf("-url: %q does not begin with https://", r.URL)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("folder of the archives: %w", err)
	}
	for _, name := range platforms {
		system, arch, found := strings.Cut(name, "/")
		if !found {
			return fmt.Errorf("-platforms: %q is not of the form linux/amd64", name)
		}
		p, err := r.archive(ctx, system, arch)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.Platforms = append(r.Platforms, p)
	}
	return r.manifest()
}

func (r *release) manifest() error {
	text, err := os.ReadFile(filepath.Join(r.root, "config", "krew", manifest))
	if err != nil {
		return fmt.Errorf("template of the manifest: %w", err)
	}
	// The comment at the top is about the template.
	_, body, _ := bytes.Cut(text, []byte("apiVersion:"))
	parsed, err := template.New(manifest).Option("missingkey=error").Parse("apiVersion:" + string(body))
	if err != nil {
		return fmt.Errorf("template of the manifest: %w", err)
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, r); err != nil {
		return fmt.Errorf("fill in the manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.out, manifest), filled.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}

func (r *release) archive(ctx context.Context, system, arch string) (platform, error) {
	p := platform{OS: system, Arch: arch, Binary: program, Archive: fmt.Sprintf("%s_%s_%s_%s.tar.gz", program, r.Version, system, arch)}
	if system == "windows" {
		p.Binary += ".exe"
	}
	folder, err := os.MkdirTemp("", "krew-")
	if err != nil {
		return p, fmt.Errorf("folder of the program: %w", err)
	}
	defer os.RemoveAll(folder)
	built := filepath.Join(folder, p.Binary)
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, r.flags, []string{"-o", built, "./cmd/" + program})...)
	build.Dir = r.root
	build.Env = append(slices.Concat(os.Environ(), r.environment), "GOOS="+system, "GOARCH="+arch)
	if output, err := build.CombinedOutput(); err != nil {
		return p, fmt.Errorf("build: %w\n%s", err, output)
	}
	files := []string{built}
	for _, name := range beside {
		files = append(files, filepath.Join(r.root, filepath.FromSlash(name)))
	}
	text, err := pack(files)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(text)
	p.SHA256 = hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(r.out, p.Archive), text, 0o644); err != nil {
		return p, fmt.Errorf("write the archive: %w", err)
	}
	return p, nil
}

// pack writes files side by side into an archive that depends on their contents only.
func pack(files []string) ([]byte, error) {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read a file of the archive: %w", err)
		}
		header := &tar.Header{Name: filepath.Base(name), Mode: 0o755, Size: int64(len(text)), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", header.Name, err)
		}
		if _, err := archive.Write(text); err != nil {
			return nil, fmt.Errorf("pack %s: %w", header.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	return b.Bytes(), nil
}
