package initiative

import "fmt"

// Factors of a score, each in [0,1] (requirement N-1).
type Factors struct {
	ExpectedValue      float64
	Confidence         float64
	Reversibility      float64
	Verifiability      float64
	HistoricalAccuracy float64
	Cost               float64
	Risk               float64
}

// FactorError says which factor is not a number in [0,1].
type FactorError struct {
	// Field is the factor's name, such as expectedValue.
	Field string
	Value float64
}

// Error names the field first.
func (e *FactorError) Error() string {
	return fmt.Sprintf("%s: is %v, must be between 0 and 1", e.Field, e.Value)
}

// Score is expected value x confidence x reversibility x verifiability x historical accuracy / max(cost + risk, epsilon)
// (requirement N-1). It is between 0 and 1/epsilon, grows with each of the first five factors and shrinks with the last
// two. The error is a *FactorError for the first factor, in the order of Factors, or the epsilon that is NaN or out of
// range; epsilon is more than 0 and at most 1.
func Score(f Factors, epsilon float64) (float64, error) {
	if wrong := f.wrong(); wrong != nil {
		return 0, wrong
	}
	if inside := epsilon > 0 && epsilon <= 1; !inside {
		return 0, fmt.Errorf("epsilon: is %v, must be more than 0 and at most 1", epsilon)
	}
	return f.score(epsilon), nil
}

// wrong is the first factor that is not a number in [0,1]; nil when there is none.
func (f Factors) wrong() *FactorError {
	for _, factor := range []FactorError{
		{"expectedValue", f.ExpectedValue}, {"confidence", f.Confidence}, {"reversibility", f.Reversibility},
		{"verifiability", f.Verifiability}, {"historicalAccuracy", f.HistoricalAccuracy}, {"cost", f.Cost}, {"risk", f.Risk},
	} {
		// NaN compares with nothing, so it is not inside.
		if inside := factor.Value >= 0 && factor.Value <= 1; !inside {
			return &factor
		}
	}
	return nil
}

func (f Factors) score(epsilon float64) float64 {
	return f.ExpectedValue * f.Confidence * f.Reversibility * f.Verifiability * f.HistoricalAccuracy / max(f.Cost+f.Risk, epsilon)
}
