package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy records writes of everybody but the controllers, with the status and the annotations of admission, and
// without any object.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
`

// auditArgs writes the policy and returns the flags that switch the audit log on.
func (e *Env) auditArgs() ([]string, error) {
	policy := e.path("apiserver", "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + e.auditLog(),
		"--audit-log-mode=blocking", // an event is in the file before its request is over
		"--audit-log-maxsize=4096",  // MiB; a file that is rotated at 100 moves away from under its marks
	}, nil
}

func (e *Env) auditLog() string { return e.path("logs", "audit.log") }

// AuditMark is a place in one API server's audit log.
type AuditMark int64

// AuditMark returns the end of the first API server's audit log. It needs Options.Audit.
func (e *Env) AuditMark() (AuditMark, error) { return endOf(e.auditLog()) }

// AuditSince returns the writes that the first API server answered after the mark and that the user with this name
// authenticated for; an impersonator's requests are its own. It needs Options.Audit.
func (e *Env) AuditSince(mark AuditMark, username string) ([]auditv1.Event, error) {
	return eventsIn(e.auditLog(), mark, username)
}

// endOf is the end of the last whole line: the next one may be half written.
func endOf(log string) (AuditMark, error) {
	file, err := os.Open(log)
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	block := make([]byte, 64<<10)
	for end > 0 {
		start := max(0, end-int64(len(block)))
		read := block[:end-start]
		if _, err := file.ReadAt(read, start); err != nil {
			return 0, fmt.Errorf("audit log: %w", err)
		}
		if i := bytes.LastIndexByte(read, '\n'); i >= 0 {
			return AuditMark(start + int64(i) + 1), nil
		}
		end = start
	}
	return 0, nil
}

func eventsIn(log string, mark AuditMark, username string) ([]auditv1.Event, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(int64(mark), io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var events []auditv1.Event
	for line := range bytes.Lines(text) {
		var event auditv1.Event
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if event.User.Username == username {
			events = append(events, event)
		}
	}
	return events, nil
}
