package widths_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const profileSays = "AgentPolicy stepbeyond-system/standard"

// Proves G-2, G-9: an answer that is wider than the policies allow, or about what the question does not show, is refused
// with the field, the bound and where it stands; each row has a twin that is taken.
func TestAnAnswerThatIsTooWideIsRefused(t *testing.T) {
	h := home(t, "bounded")
	must(t, configMap(h.Namespace, "web-0"))
	asked := ask(t, h, remove(configMap(h.Namespace, "web-0")))
	box := func(change fields) fields {
		scope := fields{"type": "TimeBoxed", "durationSeconds": 60}
		for key, value := range change {
			scope[key] = value
		}
		return scope
	}
	named := func(pattern string) fields { return box(fields{"match": fields{"name": pattern}}) }
	for _, tt := range []struct {
		name  string
		scope fields
		says  string
	}{
		{"too long", box(fields{"durationSeconds": maxSeconds + 1}), "scope.durationSeconds: Forbidden: is longer than 600, which is approvals.maxTimeBoxSeconds of " + profileSays},
		{"longer than the schema knows", box(fields{"durationSeconds": 604801}), "durationSeconds"},
		{"too many", box(fields{"uses": maxUses + 1}), "scope.uses: Forbidden: is more than 5, which is approvals.maxTimeBoxUses of " + profileSays},
		{"too many for the session", fields{"type": "Session", "uses": maxUses + 1}, "scope.uses: Forbidden: is more than 5"},
		{"no uses", box(fields{"uses": -1}), "uses"},
		{"without an end", fields{"type": "TimeBoxed"}, "durationSeconds"},
		{"an end for the session", fields{"type": "Session", "durationSeconds": 60}, "durationSeconds"},
		{"a pattern for the session", fields{"type": "Session", "match": fields{"name": "web-*"}}, "match"},
		{"several uses of the exact operation", fields{"type": "Exact", "uses": 2}, "uses"},
		{"a scope that nobody knows", fields{"type": "Everything"}, "Unsupported value"},
		{"every name", named("*"), "match.name"},
		{"every name that ends so", named("*-0"), "match.name"},
		{"a way up", named("web-*/.."), "match.name"},
		{"no name", named(""), "needs name or commands"},
		{"an empty match", box(fields{"match": fields{}}), "needs name or commands"},
		{"a letter that only looks alike", named("wеb-*"), "match.name"},
		{"a letter of full width", named("ｗeb-*"), "match.name"},
		{"capitals", named("WEB-*"), "match.name"},
		{"a space", named("web-* "), "match.name"},
		{"another name", named("api-*"), "scope.match.name: Invalid value: does not match the name in the question, web-0"},
		{"a command for a deletion", box(fields{"match": fields{"commands": []string{"ss *"}}}), "scope.match.commands: Forbidden: only an exec has commands"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := carla.patches(t, asked, answerPatch(asked, v1alpha1.VerdictApprove, tt.scope))
			if err == nil || !strings.Contains(out, tt.says) {
				t.Errorf("%v: %s; want %q", err, out, tt.says)
			}
			if now := grant(t, asked.Namespace, asked.Name); len(now.Spec.Decisions) != 0 || now.Labels[v1alpha1.LabelScope] != "" {
				t.Errorf("a refused answer is there: %+v, labels %v", now.Spec.Decisions, now.Labels)
			}
		})
	}
	t.Run("a wide denial", func(t *testing.T) {
		out, err := carla.patches(t, asked, answerPatch(asked, v1alpha1.VerdictDeny, fields{"type": "Session"}))
		if err == nil || !strings.Contains(out, "a denial is of the exact operation") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("a label without an answer", func(t *testing.T) {
		out, err := carla.patches(t, asked, `[{"op":"add","path":"/metadata/labels/stepbeyond.dev~1scope","value":"Session"},{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","shownDigest":"`+asked.Spec.Request.Digest+`"}}]`)
		if err == nil || !strings.Contains(out, "is written by the server") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("all that is allowed", func(t *testing.T) {
		g := carla.approves(t, asked, box(fields{"durationSeconds": maxSeconds, "match": fields{"name": "web-*"}}))
		if scope := g.Spec.Decisions[0].Scope; scope.Uses != maxUses {
			t.Errorf("stored with %d uses, want the policy's %d", scope.Uses, maxUses)
		}
		if g.Labels[v1alpha1.LabelScope] != "TimeBoxed" {
			t.Errorf("labels %v, want the scope", g.Labels)
		}
	})
}

// Proves G-9: under another profile other bounds hold, and the refusal names that one.
func TestTheNarrowerProfileCounts(t *testing.T) {
	h := homeUnder(t, "narrower", narrow)
	must(t, configMap(h.Namespace, "web-0"))
	asked := ask(t, h, remove(configMap(h.Namespace, "web-0")))
	out, err := carla.patches(t, asked, answerPatch(asked, v1alpha1.VerdictApprove, fields{"type": "TimeBoxed", "durationSeconds": 60}))
	if want := "scope.type: Forbidden: is wider than Session, which is approvals.widestScope of AgentPolicy stepbeyond-system/narrow"; err == nil || !strings.Contains(out, want) {
		t.Errorf("%v: %s; want %q", err, out, want)
	}
	if g := carla.approves(t, asked, fields{"type": "Session"}); *g.Status.UsesLeft != 2 {
		t.Errorf("%d uses left, want the 2 that the profile allows", *g.Status.UsesLeft)
	}
}

// Proves G-2.
func TestACommandThatDoesNotMatchItsQuestionIsRefused(t *testing.T) {
	h := home(t, "commands")
	must(t, pod(h.Namespace, "web-0"), pod(h.Namespace, "spaced-0"))
	asked := ask(t, h, execute(h.Namespace, "web-0", "cat", "/etc/nginx/nginx.conf"))
	spaced := ask(t, h, execute(h.Namespace, "spaced-0", "sh", "-c", "echo hello"))
	with := func(commands ...string) fields {
		return fields{"type": "TimeBoxed", "durationSeconds": 60, "match": fields{"commands": commands}}
	}
	for _, tt := range []struct {
		name  string
		asked *v1alpha1.PermissionGrant
		scope fields
		says  string
	}{
		{"another command", asked, with("ss *"), "none of them matches the command in the question"},
		{"fewer words", asked, with("cat"), "none of them matches the command in the question"},
		{"every command", asked, with("*"), "commands"},
		{"a letter that only looks alike", asked, with("сat *"), "commands"},
		{"a command that cannot be told word by word", spaced, with("sh *"), "cannot be told word by word"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out, err := carla.patches(t, tt.asked, answerPatch(tt.asked, v1alpha1.VerdictApprove, tt.scope)); err == nil || !strings.Contains(out, tt.says) {
				t.Errorf("%v: %s; want %q", err, out, tt.says)
			}
		})
	}
	t.Run("one that matches", func(t *testing.T) {
		carla.approves(t, asked, with("ss *", "cat /etc/nginx/*"))
	})
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.acme.example/main:1"}}},
	}
}
