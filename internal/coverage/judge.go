package coverage

import (
	"errors"
	"fmt"
	"time"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

const (
	home      = "home"      // the session's namespace
	elsewhere = "elsewhere" // no session's
)

// foreign are the origins of an object that this session did not make.
var foreign = []policy.Origin{policy.OriginOtherSession, policy.OriginPerson, policy.OriginController, policy.OriginUnknown}

// judge decides under the newest baseline alone.
type judge struct {
	engine *policy.Engine
	gates  *gates
}

func newJudge() (*judge, error) {
	embedded, err := baseline.Load(baseline.Latest)
	if err != nil {
		return nil, err
	}
	const profile = "standard"
	engine, problems := policy.Compile(policy.Set{
		Baseline: embedded, Namespaces: map[string]policy.Namespace{home: {Profile: profile}},
		Profiles: map[string]policy.Policy{profile: {ID: policy.PolicyID{Kind: policy.KindProfile, Name: profile}}},
	})
	if len(problems) > 0 {
		return nil, fmt.Errorf("baseline %s: %w", baseline.Latest, problems[0])
	}
	gates, err := newGates(embedded)
	if err != nil {
		return nil, err
	}
	return &judge{engine: engine, gates: gates}, nil
}

// rows asks for each operation that the verbs of one resource become.
func (j *judge) rows(r *Resource) ([]Row, error) {
	verbs, err := verbsOf(r)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, operation := range operations {
		if len(verbs[operation]) == 0 {
			continue
		}
		row := Row{Resource: *r, Operation: operation, Verbs: verbs[operation], Gate: GateNone}
		if operation != OperationRead {
			if err := j.fill(&row); err != nil {
				return nil, fmt.Errorf("%s %s: %w", operation, r.Path(), err)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// fill writes classes, causes and gate of a row.
func (j *judge) fill(row *Row) error {
	own, err := j.ask(row, home, policy.OriginThisSession)
	if err != nil {
		return err
	}
	worst := own
	for _, origin := range foreign {
		decision, err := j.ask(row, home, origin)
		if err != nil {
			return err
		}
		row.Foreign = max(row.Foreign, decision.Class)
		if decision.Class > worst.Class {
			worst = decision
		}
	}
	row.Own = own.Class
	if row.Own.String() == "" || row.Foreign.String() == "" {
		return errors.New("has no class")
	}
	row.Gate = j.gates.of(&row.Resource, row.Operation, worst.Class)
	if row.Gate == GateNone {
		row.Own, row.Foreign = 0, 0
		return nil
	}
	if floor := row.Gate == GateFloor || row.Gate == GateBoth; floor && min(row.Own, row.Foreign) != policy.ClassForbidden {
		return fmt.Errorf("the floor refuses it, and the engine gives %s and %s", row.Own, row.Foreign)
	}
	row.Because = causes(&worst)
	return j.closedElsewhere(row)
}

// closedElsewhere errs unless the row is FORBIDDEN in a namespace that is not the session's.
func (j *judge) closedElsewhere(row *Row) error {
	if !row.Namespaced {
		return nil
	}
	there, err := j.ask(row, elsewhere, policy.OriginThisSession)
	if err == nil && there.Class != policy.ClassForbidden {
		err = fmt.Errorf("class in another namespace is %s, want FORBIDDEN", there.Class)
	}
	return err
}

// maxCauses keeps a cell short.
const maxCauses = 2

// causes are the first codes of the details that give the class. Facts that nobody told are one cause.
func causes(d *policy.Decision) []string {
	var codes []string
	for _, detail := range d.Details {
		told := detail.Fact == "" || detail.Presence != policy.Unknown
		if detail.Class == d.Class && told && len(codes) < maxCauses {
			codes = append(codes, detail.Code)
		}
	}
	if len(codes) == 0 && len(d.Details) > 0 {
		return []string{"facts not told"}
	}
	return codes
}

func (j *judge) ask(row *Row, namespace string, origin policy.Origin) (policy.Decision, error) {
	request, err := requestOf(row, namespace)
	if err != nil {
		return policy.Decision{}, err
	}
	known := kube.Known{Origin: origin, SessionNamespaces: []string{home}, ScaleTarget: policy.OriginThisSession}
	if row.Operation == OperationCreate && row.Subresource == "" {
		known.Origin = policy.OriginUnknown
	}
	op, err := kube.Operation(request, known)
	if err != nil {
		return policy.Decision{}, err
	}
	now := time.Unix(0, 0)
	return j.engine.Decide(op, policy.SessionView{
		State: policy.SessionActive, Namespace: home, Name: "agent", UID: "uid", Epoch: 1, Username: "agent", Deadline: now.Add(time.Hour),
		Authority: policy.Authority{
			Stages:       []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute},
			Capabilities: []policy.Capability{policy.CapabilityReadContext, policy.CapabilityExecuteLocal},
			Namespaces:   []string{home},
		},
	}, now), nil
}
