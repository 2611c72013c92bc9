package kube_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// Proves C-2: a Pod with other labels leaves its controller, and one with another owner has another controller.
func TestWhoControlsAnObject(t *testing.T) {
	const controlled = `"ownerReferences":[{"kind":"ReplicaSet","name":"web-1","controller":true}]`
	pod := func(labels, more string) string {
		return `{"metadata":{"labels":{` + labels + `}` + more + `}}`
	}
	runFacts(t, []factCase{
		{name: "a foreign Pod is relabelled", what: "UPDATE pods", object: pod(`"app":"mine"`, ""), old: pod(`"app":"web"`, ""), want: "Destructive=Present"},
		{name: "a label is taken from it", what: "UPDATE pods", object: `{"metadata":{}}`, old: pod(`"app":"web"`, ""), want: "Destructive=Present"},
		{name: "a label is given to it", what: "UPDATE pods", object: pod(`"app":"web"`, ""), old: `{}`, want: "Destructive=Present"},
		{name: "through its status too", what: "UPDATE pods/status", object: pod(`"app":"mine"`, ""), old: pod(`"app":"web"`, ""), want: "Destructive=Present"},
		{name: "an own Pod of a controller is relabelled", what: "UPDATE pods", known: own, object: pod(`"app":"mine"`, ","+controlled), old: pod(`"app":"web"`, ","+controlled), want: "Destructive=Present"},
		{name: "an own Pod without a controller is free", what: "UPDATE pods", known: own, object: pod(`"app":"mine"`, ""), old: pod(`"app":"web"`, "")},
		{name: "an owner that controls nothing does not count", what: "UPDATE pods", known: own, object: pod(`"app":"mine"`, `,"ownerReferences":[{"name":"a"}]`), old: pod(`"app":"web"`, `,"ownerReferences":[{"name":"a"}]`)},
		{name: "an annotation on a foreign Pod is free", what: "UPDATE pods", object: `{"metadata":{"annotations":{"a":"b"}}}`, old: `{}`},
		{name: "a label on a foreign Deployment is free", what: "UPDATE apps/deployments", object: pod(`"app":"mine"`, ""), old: pod(`"app":"web"`, "")},
		{name: "an object is made with an owner", what: "CREATE configmaps", object: `{"metadata":{"ownerReferences":[{"uid":"u-2"}]}}`, want: "Destructive=Present"},
		{name: "an empty list of owners is none", what: "CREATE configmaps", object: `{"metadata":{"ownerReferences":[]}}`},
		{name: "a Job adopts Pods by a selector of its own", what: "CREATE batch/jobs", object: `{"spec":{"manualSelector":true}}`, want: "Destructive=Present"},
		{name: "a CronJob makes such Jobs", what: "CREATE batch/cronjobs", object: `{"spec":{"jobTemplate":{"spec":{"manualSelector":true}}}}`, want: "Destructive=Present"},
		{name: "an own CronJob is changed into one", what: "UPDATE batch/cronjobs", known: own, object: `{"spec":{"jobTemplate":{"spec":{"manualSelector":true}}}}`, old: `{"spec":{"jobTemplate":{}}}`, want: "Destructive=Present"},
		{name: "an own one that was one before is free", what: "UPDATE batch/jobs", known: own, object: `{"spec":{"manualSelector":true,"parallelism":2}}`, old: `{"spec":{"manualSelector":true}}`},
	})
}

// Proves C-2: a key of ours in what controllers copy, or where no stamp is compared, escalates.
func TestOwnKeys(t *testing.T) {
	keys := func(form, field, key string) string {
		return fmt.Sprintf(form, fmt.Sprintf(`{%q:{%q:"x"}}`, field, key))
	}
	const (
		user      = "stepbeyond.dev/user"
		escalates = "EscalatesAuthority=Present"
	)
	nested := map[string]string{
		"podtemplates":           `{"template":{"metadata":%s}}`,
		"replicationcontrollers": `{"spec":{"template":{"metadata":%s}}}`,
		"apps/deployments":       `{"spec":{"template":{"metadata":%s}}}`,
		"apps/replicasets":       `{"spec":{"template":{"metadata":%s}}}`,
		"apps/daemonsets":        `{"spec":{"template":{"metadata":%s}}}`,
		"apps/statefulsets":      `{"spec":{"template":{"metadata":%s}}}`,
		"batch/jobs":             `{"spec":{"template":{"metadata":%s}}}`,
		"batch/cronjobs":         `{"spec":{"jobTemplate":{"spec":{"template":{"metadata":%s}}}}}`,
	}
	var cases []factCase
	add := func(kind, form string) {
		for _, key := range []string{user, kube.AnnotationCreatedBy} {
			for _, field := range []string{"labels", "annotations"} {
				name := kind + " with " + key + " in nested " + field
				cases = append(cases,
					factCase{name: name, what: "CREATE " + kind, known: own, object: keys(form, field, key), want: escalates},
					factCase{name: name + ", new", what: "UPDATE " + kind, known: own, object: keys(form, field, key), old: fmt.Sprintf(form, `{}`), want: escalates},
					factCase{name: name + ", taken away", what: "UPDATE " + kind, known: own, object: fmt.Sprintf(form, `{}`), old: keys(form, field, key), want: escalates},
					factCase{name: name + ", as before", what: "UPDATE " + kind, known: own, object: keys(form, field, key), old: keys(form, field, key)},
				)
			}
		}
		cases = append(cases, factCase{name: kind + " with the server's mark", what: "CREATE " + kind, known: own, object: keys(form, "annotations", kube.AnnotationTemplateWriter)})
	}
	for kind, form := range nested {
		add(kind, form)
	}
	add("batch/cronjobs", `{"spec":{"jobTemplate":{"metadata":%s}}}`)
	add("apps/statefulsets", `{"spec":{"replicas":0,"volumeClaimTemplates":[{"metadata":%s}]}}`)
	add("pods", `{"spec":{"volumes":[{"name":"a","ephemeral":{"volumeClaimTemplate":{"metadata":%s}}}]}}`)
	const main = `{"metadata":%s}`
	cases = append(cases,
		factCase{name: "a Pod names whom it works for", what: "CREATE pods", known: own, object: keys(main, "annotations", user), want: escalates},
		factCase{name: "a Pod is said to work for another", what: "UPDATE pods", known: own, object: keys(main, "annotations", user), old: `{}`, want: escalates},
		factCase{name: "the stamps of a Pod are compared elsewhere", what: "CREATE pods", known: own, object: keys(main, "annotations", kube.AnnotationCreatedBy)},
		factCase{name: "other kinds may carry our keys", what: "CREATE configmaps", known: own, object: keys(main, "annotations", user)},
	)
	for _, subresource := range []string{"status", "ephemeralcontainers", "resize"} {
		for _, key := range []string{user, kube.AnnotationCreatedBy, kube.AnnotationTemplateWriter} {
			cases = append(cases, factCase{
				name: key + " through " + subresource, what: "UPDATE pods/" + subresource, known: own,
				object: keys(main, "annotations", key), old: `{}`, want: escalates,
			})
		}
	}
	cases = append(cases,
		factCase{name: "a binding brings its annotations along", what: "CREATE pods/binding", known: own, object: keys(main, "annotations", kube.AnnotationTemplateWriter), want: escalates},
		factCase{name: "the older binding too", what: "CREATE bindings", known: own, object: keys(main, "annotations", kube.AnnotationTemplateWriter), want: escalates},
		factCase{name: "a status that leaves them alone", what: "UPDATE pods/status", known: own, object: keys(main, "annotations", kube.AnnotationCreatedBy), old: keys(main, "annotations", kube.AnnotationCreatedBy)},
	)
	runFacts(t, cases)
}

// Proves C-2 for what a controller ends or deletes when a number changes.
func TestLimits(t *testing.T) {
	var cases []factCase
	for kind, fields := range map[string][]string{
		"pods":              {"activeDeadlineSeconds"},
		"batch/jobs":        {"activeDeadlineSeconds", "ttlSecondsAfterFinished", "backoffLimit"},
		"batch/cronjobs":    {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"},
		"apps/deployments":  {"revisionHistoryLimit"},
		"apps/statefulsets": {"revisionHistoryLimit"},
	} {
		for _, field := range fields {
			spec := func(n string) string { return fmt.Sprintf(`{"spec":{%q:%s}}`, field, n) }
			name, what := kind+" "+field, "UPDATE "+kind
			cases = append(cases,
				factCase{name: name + " is set", what: what, object: spec("1"), old: `{"spec":{}}`, want: "Destructive=Present"},
				factCase{name: name + " is lowered", what: what, object: spec("1"), old: spec("2"), want: "Destructive=Present"},
				factCase{name: name + " is raised", what: what, object: spec("2"), old: spec("1")},
				factCase{name: name + " of an own object is lowered", what: what, known: own, object: spec("1"), old: spec("2")},
				factCase{name: name + " of a new object", what: "CREATE " + kind, object: spec("1")},
			)
		}
	}
	runFacts(t, cases)
}

// Proves C-2 for autoscalers: what they scale decides.
func TestAutoscalers(t *testing.T) {
	hpa := func(apiVersion, kind, more string) string {
		return fmt.Sprintf(`{"spec":{"scaleTargetRef":{"apiVersion":%q,"kind":%q,"name":"web"}%s}}`, apiVersion, kind, more)
	}
	target := func(origin policy.Origin) func() kube.Known {
		return func() kube.Known { known := own(); known.ScaleTarget = origin; return known }
	}
	const (
		what     = "CREATE autoscaling/horizontalpodautoscalers"
		update   = "UPDATE autoscaling/horizontalpodautoscalers"
		disclose = "MaterialAssumption=Present"
		loss     = "Destructive=Present"
	)
	unknown, mine := target(policy.OriginUnknown), target(policy.OriginThisSession)
	runFacts(t, []factCase{
		{name: "an own Deployment", what: what, known: mine, object: hpa("apps/v1", "Deployment", "")},
		{name: "an own StatefulSet", what: what, known: mine, object: hpa("apps/v1", "StatefulSet", "")},
		{name: "a foreign Deployment", what: what, known: unknown, object: hpa("apps/v1", "Deployment", ""), want: disclose},
		{name: "a controller's ReplicaSet", what: what, known: target(policy.OriginController), object: hpa("apps/v1", "ReplicaSet", ""), want: disclose},
		{name: "a foreign Deployment to nothing", what: what, known: unknown, object: hpa("apps/v1", "Deployment", `,"minReplicas":0`), want: loss},
		{name: "a foreign StatefulSet", what: what, known: unknown, object: hpa("apps/v1", "StatefulSet", ""), want: loss},
		{name: "a Deployment of another group", what: what, known: unknown, object: hpa("acme.example/v1", "Deployment", ""), want: loss},
		{name: "a Deployment that cannot be read", what: what, known: own, object: hpa("apps/v1", "Deployment", ""), want: loss},
		{name: "nothing that has a name", what: what, known: own, object: `{"spec":{}}`, want: loss},
		{name: "another target than before", what: update, known: unknown, object: hpa("apps/v1", "StatefulSet", ""), old: hpa("apps/v1", "Deployment", ""), want: loss},
		{name: "other bounds than before", what: update, known: unknown, object: hpa("apps/v1", "Deployment", `,"maxReplicas":1`), old: hpa("apps/v1", "Deployment", `,"maxReplicas":9`), want: disclose},
		{name: "a label on an autoscaler", what: update, known: unknown, object: strings.Replace(hpa("apps/v1", "StatefulSet", ""), `{`, `{"metadata":{"labels":{"a":"b"}},`, 1), old: hpa("apps/v1", "StatefulSet", "")},
	})
}

// Proves C-2 for storage: the claims that a request gives to pods, and what claims are made from.
func TestClaims(t *testing.T) {
	const loss, security = "Destructive=Present", "Security=Present"
	withClaims := func(base func() kube.Known, names ...string) func() kube.Known {
		return func() kube.Known { known := base(); known.OwnClaims = names; return known }
	}
	deployment := func(image string, claimNames ...string) string {
		var volumes []string
		for _, name := range claimNames {
			volumes = append(volumes, fmt.Sprintf(`{"name":%q,"persistentVolumeClaim":{"claimName":%q}}`, name, name))
		}
		return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"image":%q}],"volumes":[%s]}}}}`, image, strings.Join(volumes, ","))
	}
	set := func(image, replicas, more string) string {
		return fmt.Sprintf(`{"metadata":{"name":"db","uid":"u-1","resourceVersion":"7"},"spec":{"replicas":%s,"volumeClaimTemplates":[{"metadata":{"name":"data"}%s}],"template":{"spec":{"containers":[{"image":%q}]}}}}`, replicas, more, image)
	}
	scale := func(replicas string) string {
		return `{"metadata":{"uid":"u-1","resourceVersion":"7"},"spec":{"replicas":` + replicas + `}}`
	}
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	runFacts(t, []factCase{
		{name: "an own claim", what: "CREATE apps/deployments", known: withClaims(own, "a"), object: deployment("x", "a")},
		{name: "a foreign claim", what: "CREATE apps/deployments", known: own, object: deployment("x", "a"), want: loss},
		{name: "a foreign one among own ones", what: "CREATE apps/deployments", known: withClaims(own, "a"), object: deployment("x", "a", "b"), want: loss},
		{name: "as many own ones as are looked at", what: "CREATE apps/deployments", known: withClaims(own, many...), object: deployment("x", many[:8]...)},
		{name: "more than are looked at", what: "CREATE apps/deployments", known: withClaims(own, many...), object: deployment("x", many...), want: loss},
		{name: "a claim that an own object used before", what: "UPDATE apps/deployments", known: own, object: deployment("y", "a"), old: deployment("x", "a")},
		{name: "one that it did not use", what: "UPDATE apps/deployments", known: own, object: deployment("x", "a", "b"), old: deployment("x", "a"), want: loss},
		{name: "a changed image of a foreign object wipes what it used before", what: "UPDATE apps/deployments", object: deployment("y", "a"), old: deployment("x", "a"), want: loss},
		{name: "replicas of a foreign object do not", what: "UPDATE apps/deployments", object: deployment("x", "a"), old: deployment("x", "a")},
		{name: "a StatefulSet finds claims under its names", what: "CREATE apps/statefulsets", known: withClaims(own, "data-db-0"), object: set("x", "2", ""), want: loss},
		{name: "a StatefulSet finds none", what: "CREATE apps/statefulsets", known: withClaims(own, "data-db-0", "data-db-1"), object: set("x", "2", "")},
		{name: "an own StatefulSet grows over a claim that is there", what: "UPDATE apps/statefulsets", known: own, object: set("x", "3", ""), old: set("x", "2", ""), want: loss},
		{name: "an own StatefulSet grows", what: "UPDATE apps/statefulsets", known: withClaims(own, "data-db-2"), object: set("x", "3", ""), old: set("x", "2", "")},
		{name: "an own StatefulSet with another image keeps its claims", what: "UPDATE apps/statefulsets", known: own, object: set("y", "2", ""), old: set("x", "2", "")},
		{name: "a foreign StatefulSet grows", what: "UPDATE apps/statefulsets", object: set("x", "3", ""), old: set("x", "2", "")},
		{name: "a foreign StatefulSet with another image", what: "UPDATE apps/statefulsets", object: set("y", "2", ""), old: set("x", "2", ""), want: loss},
		{
			name: "an own StatefulSet is scaled over a claim that is there", what: "UPDATE apps/statefulsets/scale", known: own, object: scale("3"), old: scale("2"),
			change: func(r *kube.Request) { r.Parent = decode(t, set("x", "2", "")) }, want: loss,
		},
		{name: "an own StatefulSet that was not read is scaled up", what: "UPDATE apps/statefulsets/scale", known: own, object: scale("3"), old: scale("2"), want: "Ambiguous=Present"},
		{name: "a foreign one is free", what: "UPDATE apps/statefulsets/scale", object: scale("3"), old: scale("2")},
		{name: "a StatefulSet made from a snapshot", what: "CREATE apps/statefulsets", known: own, object: set("x", "0", `,"spec":{"dataSource":{"name":"db"}}`), want: security},
		{name: "a claim", what: "CREATE persistentvolumeclaims", object: `{"spec":{"resources":{}}}`},
		{name: "a claim from a snapshot", what: "CREATE persistentvolumeclaims", object: `{"spec":{"dataSource":{"name":"db"}}}`, want: security},
		{name: "a claim from another namespace", what: "CREATE persistentvolumeclaims", object: `{"spec":{"dataSourceRef":{"name":"db"}}}`, want: security},
		{name: "a claim for one volume", what: "CREATE persistentvolumeclaims", object: `{"spec":{"volumeName":"pv-1"}}`, want: security},
		{name: "a claim that is given a volume", what: "UPDATE persistentvolumeclaims", known: own, object: `{"spec":{"volumeName":"pv-1"}}`, old: `{"spec":{"volumeName":""}}`, want: security},
		{name: "a claim that has one", what: "UPDATE persistentvolumeclaims", known: own, object: `{"spec":{"volumeName":"pv-1"},"metadata":{"labels":{"a":"b"}}}`, old: `{"spec":{"volumeName":"pv-1"}}`},
	})
}

func TestClaimsOfAStatefulSetAreBoundedWhateverItsReplicas(t *testing.T) {
	const template = `"volumeClaimTemplates":[{"metadata":{"name":"data"}}],"template":{"spec":{}}`
	set := func(more string) string { return `{"metadata":{"name":"db"},"spec":{` + more + `,` + template + `}}` }
	claims := func(names ...string) []kube.Claim {
		var list []kube.Claim
		for _, name := range names {
			list = append(list, kube.Claim{Name: name, Generated: true})
		}
		return list
	}
	for _, test := range []struct {
		name, what, object, old string
		want                    int
		claims                  []kube.Claim
	}{
		{"more replicas than there are", "CREATE apps/statefulsets", set(`"replicas":9000000000000000000`), "", kube.MaxClaims + 1, nil},
		{"and more than before", "UPDATE apps/statefulsets", set(`"replicas":9000000000000000000`), set(`"replicas":8000000000000000000`), kube.MaxClaims + 1, nil},
		{"ordinals that begin later", "CREATE apps/statefulsets", set(`"replicas":1,"ordinals":{"start":5}`), "", 1, claims("data-db-5")},
		{"ordinals around those before", "UPDATE apps/statefulsets", set(`"replicas":4`), set(`"replicas":2,"ordinals":{"start":1}`), 2, claims("data-db-0", "data-db-3")},
		{"no replicas", "CREATE apps/statefulsets", set(`"replicas":0`), "", 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := kube.ClaimsOf(request(t, test.what, test.object, test.old), policy.OriginThisSession)
			if len(got) != test.want {
				t.Errorf("%d claims, want %d", len(got), test.want)
			}
			if test.claims != nil {
				if diff := cmp.Diff(test.claims, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	t.Run("a name that the request chose too is not the template's", func(t *testing.T) {
		object := strings.Replace(set(`"replicas":1`), `"spec":{}`, `"spec":{"volumes":[{"persistentVolumeClaim":{"claimName":"data-db-0"}}]}`, 1)
		got := kube.ClaimsOf(request(t, "CREATE apps/statefulsets", object, ""), policy.OriginUnknown)
		if diff := cmp.Diff([]kube.Claim{{Name: "data-db-0"}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// Proves C-2 for what loosens the hold of the cluster on pods.
func TestPlacementAndBudgets(t *testing.T) {
	const security = "Security=Present"
	deployment := func(spec string) string { return `{"spec":{"template":{"spec":` + spec + `}}}` }
	budget := func(selector, more string) string { return `{"spec":{"minAvailable":1` + selector + more + `}}` }
	sts := func(when, policy, more string) string {
		return fmt.Sprintf(`{"spec":{"replicas":0,"persistentVolumeClaimRetentionPolicy":{%q:%q}%s}}`, when, policy, more)
	}
	const what = "CREATE policy/poddisruptionbudgets"
	cases := []factCase{
		{name: "the node of a running Pod is no choice", what: "UPDATE pods", known: own, object: `{"spec":{"nodeName":"n","containers":[{"image":"b"}]}}`, old: `{"spec":{"nodeName":"n","containers":[{"image":"a"}]}}`},
		{name: "a sandbox is taken away", what: "UPDATE apps/deployments", known: own, object: deployment(`{}`), old: deployment(`{"runtimeClassName":"gvisor"}`), want: security},
		{name: "a sandbox stays", what: "UPDATE apps/deployments", known: own, object: deployment(`{"runtimeClassName":"gvisor","containers":[{"image":"b"}]}`), old: deployment(`{"runtimeClassName":"gvisor"}`)},
		{name: "only the priority class changes", what: "UPDATE apps/deployments", known: own, object: deployment(`{"priorityClassName":"system-cluster-critical"}`), old: deployment(`{}`), want: security},
		{name: "it was the system's before", what: "UPDATE apps/deployments", known: own, object: deployment(`{"priorityClassName":"system-a","tolerations":[{"key":"gpu"}]}`), old: deployment(`{"priorityClassName":"system-a"}`)},
		{name: "a budget over named Pods", what: what, object: budget(`,"selector":{"matchLabels":{"app":"web"}}`, "")},
		{name: "a budget over Pods that have a label", what: what, object: budget(`,"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}`, "")},
		{name: "a budget without a selector", what: what, object: budget("", ""), want: security},
		{name: "a budget over everything", what: what, object: budget(`,"selector":{}`, ""), want: security},
		{name: "a budget over everything but one", what: what, object: budget(`,"selector":{"matchExpressions":[{"key":"app","operator":"NotIn","values":["x"]}]}`, ""), want: security},
		{name: "a budget that becomes one", what: "UPDATE policy/poddisruptionbudgets", known: own, object: budget(`,"selector":{}`, ""), old: budget(`,"selector":{"matchLabels":{"app":"web"}}`, ""), want: security},
		{name: "a label on one", what: "UPDATE policy/poddisruptionbudgets", object: `{"metadata":{"labels":{"a":"b"}},"spec":{}}`, old: `{"spec":{}}`},
	}
	for _, when := range []string{"whenDeleted", "whenScaled"} {
		cases = append(cases,
			factCase{name: "a new StatefulSet deletes its claims " + when, what: "CREATE apps/statefulsets", known: own, object: sts(when, "Delete", `,"volumeClaimTemplates":[{}]`), want: "Destructive=Present"},
			factCase{name: "one without claims " + when, what: "CREATE apps/statefulsets", known: own, object: sts(when, "Delete", "")},
			factCase{name: "one that retains them " + when, what: "CREATE apps/statefulsets", known: own, object: sts(when, "Retain", `,"volumeClaimTemplates":[{}]`)},
			factCase{name: "one that is told to " + when, what: "UPDATE apps/statefulsets", known: own, object: sts(when, "Delete", ""), old: sts(when, "Retain", ""), want: "Destructive=Present"},
			factCase{name: "one that was told before " + when, what: "UPDATE apps/statefulsets", known: own, object: sts(when, "Delete", `,"x":1`), old: sts(when, "Delete", "")},
		)
	}
	runFacts(t, cases)
}
