package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/test/bench"
)

var (
	sizes = []int{10, 100, 1000}
	paths = []policy.Class{policy.ClassAuto, policy.ClassAsk}
)

// key names one contender.
type key struct {
	what   string
	engine string
	rules  int
	path   policy.Class
}

const (
	rules      = "rules"
	kubernetes = "kubernetes"
)

func (k key) String() string {
	return fmt.Sprintf("%s/%s/%d/%v", k.what, k.engine, k.rules, k.path)
}

var errNoContender = errors.New("is not what/engine/rules/path")

// parseKey reads what String writes.
func parseKey(text string) (key, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return key{}, fmt.Errorf("contender %q %w", text, errNoContender)
	}
	k := key{what: parts[0], engine: parts[1]}
	var err error
	if k.rules, err = strconv.Atoi(parts[2]); err != nil {
		return key{}, fmt.Errorf("contender %q: rules: %w", text, err)
	}
	for _, path := range paths {
		if path.String() == parts[3] {
			k.path = path
			return k, nil
		}
	}
	return key{}, fmt.Errorf("contender %q: path: %w", text, errNoContender)
}

// keys of one group, which is measured together, in the order in which it is printed.
func keys(what string, path policy.Class) []key {
	var list []key
	for _, n := range sizes {
		if what == rules {
			for _, engine := range bench.Engines() {
				list = append(list, key{what, engine.Name, n, path})
			}
			continue
		}
		for _, engine := range bench.KubeEngines() {
			list = append(list, key{what, engine.Name, n, path})
		}
	}
	return list
}
