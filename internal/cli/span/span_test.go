package span_test

import (
	"testing"
	"time"

	"stepbeyond.dev/stepbeyond/internal/cli/span"
)

func TestALengthOfTimeHasItsTwoLargestUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 999 * time.Millisecond: "0s", time.Second: "1s", 59 * time.Second: "59s",
		time.Minute: "1m", 90 * time.Second: "1m30s", 10*time.Minute + 59*time.Second: "10m", time.Hour - 1: "59m",
		time.Hour: "1h", 15*time.Hour + 16*time.Minute + 59*time.Second: "15h16m", 24*time.Hour - 1: "23h59m",
		24 * time.Hour: "1d", 76 * time.Hour: "3d4h", 240 * time.Hour: "10d", 1<<63 - 1: "106751d",
	} {
		if got := span.Text(d); got != want {
			t.Errorf("%v: %q, want %q", int64(d), got, want)
		}
	}
}
