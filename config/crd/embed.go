// Package crd holds the custom resource definitions, so that a program without a cluster can check objects by them.
package crd

import "embed"

// Bases are the definitions as controller-gen writes them, one per file of folder bases.
//
//go:embed bases/*.yaml
var Bases embed.FS
