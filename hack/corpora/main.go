// Corpora measures the engine against the public data in the folder that CORPORA names, prints a table and, where
// CORPORA_OUT names a file, writes the same there as JSON lines. Without the folder it says so and is content: the data
// is no part of the repository, and nothing is proven by its absence.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"stepbeyond.dev/stepbeyond/internal/corpora"
)

func main() {
	if err := run(os.Getenv("CORPORA"), os.Getenv("CORPORA_OUT")); err != nil {
		fmt.Fprintln(os.Stderr, "corpora:", err)
		os.Exit(1)
	}
}

func run(folder, out string) error {
	if info, err := os.Stat(folder); folder == "" || err != nil || !info.IsDir() {
		fmt.Println("no corpora")
		return nil
	}
	rows, err := measure(os.DirFS(folder))
	if err != nil {
		return err
	}
	if out != "" {
		if err := write(out, rows); err != nil {
			return err
		}
	}
	return corpora.Print(os.Stdout, rows)
}

// measure asks the engine, and where the control plane's binaries are there, a real cluster too.
func measure(data fs.FS) (rows []corpora.Row, err error) {
	if rows, err = corpora.Measure(data); err != nil {
		return nil, err
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "corpora: without KUBEBUILDER_ASSETS nothing is measured through the webhook")
		return rows, nil
	}
	writer, stop, err := startAdmission(context.Background())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	admitted, err := corpora.MeasureAdmission(data, writer)
	return append(rows, admitted...), err
}

func write(path string, rows []corpora.Row) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := corpora.Write(file, rows); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Close()
}
