package kube

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What lines may show of a string. Everything else becomes a short digest: a value can hold a secret, and text that an
// agent chose can talk to the approver. Commands are the exception, because what runs is what is approved.
var (
	enumWord   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)
	quantity   = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,6})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$`)
	identifier = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)
	imageName  = regexp.MustCompile(`^[a-z0-9][-a-z0-9._:/]{0,118}(@sha256:[a-f0-9]{64})?$`)
	plainKey   = regexp.MustCompile(`^[A-Za-z0-9$][-A-Za-z0-9_$]{0,62}$`)
	capability = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,31}$`)
	address    = regexp.MustCompile(`^[0-9a-fA-F.:/]{2,43}$`)
	plainWord  = regexp.MustCompile(`^[-A-Za-z0-9_./:=,@%+]+$`)
	dottedKey  = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_./]{0,99}$`)
)

// enumFields of built-in kinds hold one of a few words.
var enumFields = []string{
	"type", "imagePullPolicy", "restartPolicy", "protocol", "accessModes", "volumeMode", "concurrencyPolicy",
	"sessionAffinity", "externalTrafficPolicy", "internalTrafficPolicy", "ipFamilyPolicy", "ipFamilies",
	"podManagementPolicy", "whenDeleted", "whenScaled", "policyTypes", "pathType", "operator", "effect", "dnsPolicy",
	"terminationMessagePolicy", "completionMode", "procMount", "podReplacementPolicy", "clusterIP", "propagationPolicy",
	"unhealthyPodEvictionPolicy", "preemptionPolicy",
}

// nameFields of built-in kinds hold names of other objects and of hosts.
var (
	nameFields = []string{
		"serviceAccountName", "serviceAccount", "storageClassName", "ingressClassName", "priorityClassName",
		"secretName", "claimName", "runtimeClassName", "host", "hosts",
	}
	// nameParents are where a field "name" names another object.
	nameParents  = []string{"secretKeyRef", "secretRef", "configMapKeyRef", "configMapRef", "secret", "service", "nodePublishSecretRef"}
	resourceMaps = []string{"limits", "requests", "capacity", "hard"}
)

// structure are the fields of built-in kinds that hold further fields of the schema, never keys that somebody chose.
// A value is shown only when all fields above it are of these, so nothing under data, labels, annotations or env is.
var structure = []string{
	"spec", "template", "jobTemplate", "strategy", "updateStrategy", "rollingUpdate", "ports", "containers",
	"initContainers", "ephemeralContainers", "securityContext", "capabilities", "seccompProfile", "appArmorProfile",
	"tolerations", "persistentVolumeClaimRetentionPolicy", "volumeClaimTemplates", "resources", "volumes", "projected",
	"sources", "secret", "persistentVolumeClaim", "ingress", "egress", "rules", "http", "paths", "backend", "service",
	"metrics", "resource", "target", "deleteOptions", "accessModes", "ipFamilies", "policyTypes", "add", "drop",
	"csi", "nodePublishSecretRef", "envFrom", "secretRef", "configMapRef", "tls",
	"from", "to", "ipBlock",
	"livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "postStart", "preStop", "exec",
}

// showString gives the string itself where the rules allow it. keys are the path without list positions.
func showString(keys []string, text string) (shown string, ok bool) {
	if len(keys) == 0 {
		return "", false
	}
	last, above := keys[len(keys)-1], keys[:len(keys)-1]
	parent := ""
	if len(above) > 0 {
		parent = above[len(above)-1]
	}
	inResources := slices.Contains(resourceMaps, parent)
	secretRef := parent == "secretKeyRef" || parent == "configMapKeyRef"
	if !allStructure(trimPath(above, inResources, secretRef)) {
		return "", false
	}
	switch {
	case inResources:
		ok = quantity.MatchString(text)
	case slices.Contains(enumFields, last):
		ok = enumWord.MatchString(text)
	case last == "command", last == "args":
		return commandWord(text), true
	case last == "add", last == "drop":
		ok = capability.MatchString(text)
	case last == "cidr", last == "except", last == "externalIPs":
		ok = address.MatchString(text)
	case last == "image":
		ok = imageName.MatchString(text)
	case last == "name":
		ok = slices.Contains(nameParents, parent) && identifier.MatchString(text)
	case slices.Contains(nameFields, last):
		ok = identifier.MatchString(text)
	}
	return text, ok
}

// commandWord spells one word of a command in printable ASCII; what a shell would not take as one plain word is quoted.
func commandWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return strconv.QuoteToASCII(word)
}

// trimPath takes off the ends of a path that showString has looked at itself: the map of a resource list, and the
// reference from an environment variable.
func trimPath(above []string, inResources, secretRef bool) []string {
	switch {
	case inResources:
		return above[:len(above)-1]
	case secretRef && len(above) >= 3 && above[len(above)-2] == "valueFrom" && above[len(above)-3] == "env":
		return above[:len(above)-3]
	default:
		return above
	}
}

func allStructure(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(structure, key) })
}

// asciiOnly bounds text to printable ASCII; what is not is escaped as in Go, and what is too long ends in dots.
func asciiOnly(text string, limit int) string {
	quoted := strconv.QuoteToASCII(text)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	if len(quoted) > limit {
		return quoted[:limit-2] + ".."
	}
	return quoted
}

// showKey spells a path segment. A key that does not look like one is shown in part, with a digest that tells it apart.
func (k *Key) showKey(segment string) string {
	switch {
	case plainKey.MatchString(segment):
		return "." + segment
	case dottedKey.MatchString(segment):
		return "[" + segment + "]"
	default:
		clean := strings.Map(func(r rune) rune {
			if strings.ContainsRune("-_./", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
				return r
			}
			return '_'
		}, segment[:min(len(segment), 40)])
		return "[" + clean + "~" + k.Short("key", segment) + "]"
	}
}
