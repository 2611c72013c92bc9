package expr

import "testing"

// A program whose cost is known and large is counted: several of them have to add up in the cost of one decision.
func TestAnExpressionThatMayCostALotIsCounted(t *testing.T) {
	const list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
	program, err := Compile(list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c > 0)))")
	if err != nil {
		t.Fatal(err)
	}
	got, cost, err := program.Eval(&View{})
	if program.bound != 0 || !got || err != nil || cost < 1000 {
		t.Errorf("gives %v at cost %d with bound %d, error %v, want true at a counted cost of more than 1000", got, cost, program.bound, err)
	}
}
