package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// options of one run of the story.
type options struct {
	out      io.Writer
	mutation mutation // empty: nothing is broken
	keep     bool     // leave everything running until the context ends
	verbose  bool     // also print command lines and what kubectl printed
	// onRow is told each row with what differs from the wanted one. Omitted: nobody is told.
	onRow func(got row, differences []string)
}

func (o options) progress(step string) { fmt.Fprintf(o.out, "   .. %s\n", step) }

// differsError names the rows that are not as wanted.
type differsError struct{ rows []string }

func (e *differsError) Error() string {
	return "rows that differ from wanted.tsv: " + strings.Join(e.rows, ", ")
}

// run plays the story on a control plane of its own. The error is a differsError when a row is not as wanted, and
// anything else when the story could not be played to its end.
func run(ctx context.Context, opts options) (err error) {
	if err := opts.mutation.check(); err != nil {
		return err
	}
	steps, wanted, err := readTables()
	if err != nil {
		return err
	}
	c, err := startCluster(ctx, opts)
	if err != nil {
		return err
	}
	defer func() {
		opts.progress("stop everything")
		err = errors.Join(err, c.env.Stop())
	}()
	p := &player{cluster: c, opts: opts, variables: map[string]string{}}
	err = p.play(ctx, steps, wanted)
	if opts.keep && ctx.Err() == nil {
		c.printExports(opts.out)
		fmt.Fprintln(opts.out, "# everything runs until Ctrl-C")
		<-ctx.Done()
	}
	return err
}

func readTables() ([]step, map[string]row, error) {
	root, err := env.RepositoryRoot()
	if err != nil {
		return nil, nil, err
	}
	folder := filepath.Join(root, "test", "e2e", "demo")
	steps, err := readStory(filepath.Join(folder, "story.yaml"))
	if err != nil {
		return nil, nil, err
	}
	rows, err := readWanted(filepath.Join(folder, "wanted.tsv"))
	if err != nil {
		return nil, nil, err
	}
	wanted, err := match(steps, rows)
	return steps, wanted, err
}
