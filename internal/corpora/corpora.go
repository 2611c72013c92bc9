package corpora

import "io/fs"

// Measure gives the rows of all sets that the folder has, in a fixed order. Sets that it lacks have no row. It errs when
// a file cannot be read.
func Measure(data fs.FS) ([]Row, error) {
	j, err := newJudge()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, measure := range []func(fs.FS, *judge) ([]*Row, error){
		injecagent, mcpTools, tau2, traceCalls, kyverno, podSecurity, gatekeeper, rbac, traceWrites, loops, scopeWords,
	} {
		measured, err := measure(data, j)
		if err != nil {
			return nil, err
		}
		for _, row := range measured {
			if row.N > 0 {
				rows = append(rows, *row)
			}
		}
	}
	return rows, nil
}
