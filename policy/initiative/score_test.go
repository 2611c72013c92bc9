package initiative_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy/initiative"
)

// factor gives access to each factor by its name.
var factors = []struct {
	name  string
	of    func(f *initiative.Factors) *float64
	grows bool
}{
	{"expectedValue", func(f *initiative.Factors) *float64 { return &f.ExpectedValue }, true},
	{"confidence", func(f *initiative.Factors) *float64 { return &f.Confidence }, true},
	{"reversibility", func(f *initiative.Factors) *float64 { return &f.Reversibility }, true},
	{"verifiability", func(f *initiative.Factors) *float64 { return &f.Verifiability }, true},
	{"historicalAccuracy", func(f *initiative.Factors) *float64 { return &f.HistoricalAccuracy }, true},
	{"cost", func(f *initiative.Factors) *float64 { return &f.Cost }, false},
	{"risk", func(f *initiative.Factors) *float64 { return &f.Risk }, false},
}

// worth has that score with any epsilon of at most 1, up to a score of 1.
func worth(score float64) initiative.Factors {
	return initiative.Factors{ExpectedValue: score, Confidence: 1, Reversibility: 1, Verifiability: 1, HistoricalAccuracy: 1, Cost: 0.5, Risk: 0.5}
}

// Proves N-1.
func TestTheScoreIsTheFormula(t *testing.T) {
	tests := []struct {
		name    string
		f       initiative.Factors
		epsilon float64
		want    float64
	}{
		{"every factor counts", initiative.Factors{ExpectedValue: 0.5, Confidence: 0.5, Reversibility: 0.5, Verifiability: 0.5, HistoricalAccuracy: 0.5, Cost: 0.25, Risk: 0.25}, 0.01, 0.0625},
		{"cost and risk add up", initiative.Factors{ExpectedValue: 1, Confidence: 1, Reversibility: 1, Verifiability: 1, HistoricalAccuracy: 1, Cost: 1, Risk: 1}, 0.01, 0.5},
		{"epsilon bounds what is free and safe", initiative.Factors{ExpectedValue: 1, Confidence: 1, Reversibility: 1, Verifiability: 1, HistoricalAccuracy: 1}, 0.25, 4},
		{"a factor of nothing gives nothing", initiative.Factors{ExpectedValue: 1, Confidence: 1, Verifiability: 1, HistoricalAccuracy: 1}, 0.25, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := initiative.Score(tt.f, tt.epsilon)
			if err != nil || got != tt.want {
				t.Errorf("Score = %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// Proves N-1: what is no number in [0,1] is rejected and named.
func TestAWrongFactorIsRejectedByName(t *testing.T) {
	for _, factor := range factors {
		for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.001, 1.001, -math.SmallestNonzeroFloat64} {
			f := worth(0.5)
			*factor.of(&f) = value
			_, err := initiative.Score(f, 0.01)
			var wrong *initiative.FactorError
			if !errors.As(err, &wrong) || wrong.Field != factor.name {
				t.Errorf("%s = %v: error %v, want one for that factor", factor.name, value, err)
			}
		}
		for _, value := range []float64{0, 1} {
			f := worth(0.5)
			*factor.of(&f) = value
			if _, err := initiative.Score(f, 0.01); err != nil {
				t.Errorf("%s = %v: %v", factor.name, value, err)
			}
		}
	}
	f := worth(0.5)
	f.Risk = 2
	_, err := initiative.Score(f, 0.01)
	if diff := cmp.Diff("risk: is 2, must be between 0 and 1", err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// Proves N-1: epsilon is positive.
func TestAWrongEpsilonIsRejected(t *testing.T) {
	for _, epsilon := range []float64{0, -1, 1.5, math.NaN(), math.Inf(1)} {
		if score, err := initiative.Score(worth(1), epsilon); err == nil {
			t.Errorf("epsilon %v gives score %v, want an error", epsilon, score)
		}
	}
}

// drawFactors and epsilon, both away from the edges of their ranges in most draws.
func drawFactors(t *rapid.T) (f initiative.Factors, epsilon float64) {
	for _, factor := range factors {
		*factor.of(&f) = drawBetween(t, factor.name, 0, 1)
	}
	return f, rapid.Float64Range(1e-6, 1).Draw(t, "epsilon")
}

// drawBetween divides the range evenly in two of three draws. rapid alone draws mostly numbers next to zero, and the
// product of five of those is zero whatever changes.
func drawBetween(t *rapid.T, label string, from, to float64) float64 {
	if rapid.IntRange(0, 2).Draw(t, label+" at an edge") == 0 {
		return rapid.Float64Range(from, to).Draw(t, label)
	}
	return min(to, from+(to-from)*float64(rapid.IntRange(0, 100).Draw(t, label))/100)
}

// drawRaised has one factor raised, or as it is.
func drawRaised(t *rapid.T, f initiative.Factors, of func(*initiative.Factors) *float64, name string) initiative.Factors {
	value := of(&f)
	*value = drawBetween(t, name, *value, 1)
	return f
}

// Proves N-1: the score never falls when value, confidence, reversibility, verifiability or accuracy rises, never rises
// when cost or risk does, and stays within its bounds.
func TestTheScoreIsMonotoneInEachFactor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, epsilon := drawFactors(t)
		before, err := initiative.Score(f, epsilon)
		if err != nil {
			t.Fatal(err)
		}
		if before < 0 || before > 1/epsilon {
			t.Fatalf("score %v is outside of 0 and 1/epsilon, %v", before, 1/epsilon)
		}
		for _, factor := range factors {
			raised := drawRaised(t, f, factor.of, factor.name)
			after, err := initiative.Score(raised, epsilon)
			if err != nil {
				t.Fatal(err)
			}
			if (factor.grows && after < before) || (!factor.grows && after > before) {
				t.Fatalf("%s rose to %v and the score went from %v to %v", factor.name, *factor.of(&raised), before, after)
			}
		}
	})
}

func TestEachFactorMovesTheScore(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		f, epsilon := drawFactors(t)
		before, err := initiative.Score(f, epsilon)
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, factor := range factors {
			after, err := initiative.Score(drawRaised(t, f, factor.of, factor.name), epsilon)
			if err != nil {
				t.Fatal(err)
			}
			labels = append(labels, fmt.Sprintf("%s moved=%t", factor.name, after != before))
		}
		return labels
	})
	var wanted []string
	for _, factor := range factors {
		wanted = append(wanted, factor.name+" moved=true", factor.name+" moved=false")
	}
	shares.Check(t, labels, 2000, wanted...)
}
