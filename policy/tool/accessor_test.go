package tool_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/tool"
)

// Proves C-4: a tool that gets or sets only reads when the call gives nothing to set, and its description says what that
// would be.
func TestAnAccessorReadsUntilSomethingIsSet(t *testing.T) {
	const volume = "Get or set the volume of a speaker. If the volume is given, it will be changed. Returns the volume."
	speaker := arguments{"speaker": "kitchen"}
	for _, test := range []struct {
		name string
		call tool.Call
		want bool
	}{
		{"nothing is set", tool.Call{Name: "speaker_volume", Description: volume, Arguments: speaker}, true},
		{"a name with the argument's verb", tool.Call{Name: "rooms_light", Description: "Get or update the light of a room. If light is set in the call, it will be updated.", Arguments: speaker}, true},
		{"the argument's noun is a verb elsewhere", tool.Call{Name: "pages_scale", Description: "Get or update the scale of a page. If the scale is set, it will be updated. Always returns the current scale.", Arguments: speaker}, true},
		{"it is set", tool.Call{Name: "speaker_volume", Description: volume, Arguments: arguments{"speaker": "kitchen", "volume": 3}}, false},
		{"it is set to nothing", tool.Call{Name: "speaker_volume", Description: volume, Arguments: arguments{"speaker": "kitchen", "volume": nil}}, false},
		{"it is set by another spelling", tool.Call{Name: "speaker_volume", Description: volume, Arguments: arguments{"speaker": "kitchen", "newVolume": 3}}, false},
		{"it may be set inside", tool.Call{Name: "speaker_volume", Description: volume, Arguments: arguments{"speaker": arguments{"volume": 3}}}, false},
		{"it may be set in a list", tool.Call{Name: "speaker_volume", Description: volume, Arguments: arguments{"speaker": []any{"kitchen", 3}}}, false},
		{"the arguments are not known", tool.Call{Name: "speaker_volume", Description: volume}, false},
		{"an action asks for a change", tool.Call{Name: "speaker_volume", Description: volume, Arguments: arguments{"action": "update"}}, false},
		{"another verb of changing in the name", tool.Call{Name: "reset_volume", Description: volume, Arguments: speaker}, false},
		{"it creates what it does not find", tool.Call{Name: "speaker_volume", Description: "Get or create a speaker. If the volume is given, it will be changed.", Arguments: speaker}, false},
		{"nothing says when it sets", tool.Call{Name: "speaker_volume", Description: "Get or set the volume of a speaker.", Arguments: speaker}, false},
		{"it sets without an argument", tool.Call{Name: "speaker_volume", Description: volume + " Otherwise the volume is reset.", Arguments: speaker}, false},
		{"a condition that is not understood", tool.Call{Name: "speaker_volume", Description: volume + " Unless mute is off, the speaker is updated.", Arguments: speaker}, false},
		{"it gets and sets", tool.Call{Name: "speaker_volume", Description: "Get or set the volume and delete the rest. If the volume is given, it will be changed.", Arguments: speaker}, false},
		{"it sets or gets", tool.Call{Name: "speaker_volume", Description: "Set or get the volume. If the volume is given, it will be changed.", Arguments: speaker}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := tool.Operation(test.call, tool.Known{})
			if got := op.ReadBy == policy.Parsed && op.Verb == policy.VerbRead; got != test.want {
				t.Errorf("is a pure read: %v, want %v", got, test.want)
			}
		})
	}
}

// Proves C-7: labels from a kubeconfig are no credentials, what it holds is.
func TestLabelsFromAKubeconfig(t *testing.T) {
	credentials := []string{"Credentials"}
	for description, want := range map[string][]string{
		"List user names and server urls from the kubeconfig file": {},
		"Get the name from a kubeconfig":                           {},
		"List the contents from the kubeconfig":                    credentials,
		"List client key data and names from the kubeconfig":       credentials,
		"List names and tokens from the kubeconfig":                credentials,
		"List names from the kubeconfig and passwords":             credentials,
		"List names from the cluster as kubeconfig":                credentials,
		"Get the configuration as a kubeconfig":                    credentials,
		"List names from the secret":                               credentials,
	} {
		op := tool.Operation(tool.Call{Name: "contexts_list", Description: description}, tool.Known{})
		if diff := cmp.Diff(want, presentFacts(op)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", description, diff)
		}
	}
}

// Proves C-4: what a tool examines needs a description that reads.
func TestAnExaminationNeedsAReadingDescription(t *testing.T) {
	for _, test := range []struct {
		call tool.Call
		want bool
	}{
		{tool.Call{Name: "mesh_topology", Description: "Returns the topology of the mesh"}, true},
		{tool.Call{Name: "disk_troubleshoot", Description: "Show why a disk fails"}, true},
		{tool.Call{Name: "disk_troubleshoot", Description: "Repair a disk"}, false},
		{tool.Call{Name: "disk_troubleshoot"}, false},
		{tool.Call{Name: "rebuild_topology", Description: "Returns the new topology"}, false},
	} {
		op := tool.Operation(test.call, tool.Known{})
		if got := op.ReadBy == policy.Parsed; got != test.want {
			t.Errorf("%s, %q is a pure read: %v, want %v", test.call.Name, test.call.Description, got, test.want)
		}
	}
}
