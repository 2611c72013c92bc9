// Krew builds the archives of the kubectl plugin for every platform, and the manifest that krew installs them from:
// config/krew/stepbeyond.yaml with version, places and checksums filled in. The same commit gives the same archives.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
)

// everywhere are the platforms that are released.
const everywhere = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

func main() {
	version := flag.String("version", "", "version of the release, as in v1.2.3")
	url := flag.String("url", "", "folder from which the archives will be downloaded, with https://")
	out := flag.String("out", "dist/krew", "folder to write to")
	platforms := flag.String("platforms", everywhere, "operating systems and processors, as Go names them")
	flag.Parse()
	r := release{
		Version: *version, URL: strings.TrimSuffix(*url, "/"), root: ".", out: *out,
		flags: []string{"-trimpath", "-ldflags=-s -w"}, environment: []string{"CGO_ENABLED=0"},
	}
	if err := r.make(context.Background(), strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
	fmt.Printf("krew: %s holds stepbeyond.yaml and %d archives\n", *out, len(r.Platforms))
}
