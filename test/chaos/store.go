package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// store keeps the results of rows between runs, one file each.
type store struct{ dir string }

func openStore() (*store, error) {
	dir, err := repository("bin", "testing", "chaos")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return &store{dir}, nil
}

func (s *store) keep(m *measured) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, m.Row+".json"), text, 0o644); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// of gives the result of a row; nil for one that was never run.
func (s *store) of(r *row) (*measured, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, r.name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	m := &measured{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("result of %s: %w", r.name, err)
	}
	return m, nil
}
