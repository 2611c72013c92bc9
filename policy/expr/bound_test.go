package expr

import "testing"

func TestOnlyExpressionsThatAreCheapByTheirFormRunUncounted(t *testing.T) {
	for source, want := range map[string]bool{
		`object.spec.replicas > 2 && object.metadata.?labels.?tier.orValue('') != 'development'`: true,
		`request.name.startsWith('web-')`:                            true,
		`request.verb in ['create', 'update']`:                       true,
		`object.spec.containers.all(c, c.image != '')`:               false,
		`target.podTemplates.exists(t, t.images.exists(i, i == ''))`: false,
		`object.a == object.b`:                                       false,
		`object.a in object.b`:                                       false,
		`object.a.matches('^(a+)+$')`:                                false,
		`object.a.contains('b')`:                                     false,
		`quantity(object.a).isGreaterThan(quantity('1'))`:            false,
		`object.a.lowerAscii() == 'x'`:                               false,
	} {
		program, err := Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got := program.bound > 0; got != want {
			t.Errorf("%s: uncounted = %v, want %v (bound %d)", source, got, want, program.bound)
		}
	}
}
