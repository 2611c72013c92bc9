// Package span writes lengths of time for people.
package span

import (
	"fmt"
	"time"
)

const day = 24 * time.Hour

// Text gives a length of time in its two largest units, rounded down: 42s, 48m, 15h16m, 3d4h. Less than a second, and
// what is negative, is 0s. From 10 minutes on seconds say nothing, and from 10 days on hours.
func Text(d time.Duration) string {
	days, hours, minutes, seconds := int(d/day), int(d%day/time.Hour), int(d%time.Hour/time.Minute), int(d%time.Minute/time.Second)
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", seconds)
	case d < 10*time.Minute:
		return pair(minutes, "m", seconds, "s")
	case d < time.Hour:
		return fmt.Sprintf("%dm", minutes)
	case d < day:
		return pair(hours, "h", minutes, "m")
	case d < 10*day:
		return pair(days, "d", hours, "h")
	default:
		return fmt.Sprintf("%dd", days)
	}
}

func pair(large int, unit string, small int, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d%s", large, unit)
	}
	return fmt.Sprintf("%d%s%d%s", large, unit, small, smallUnit)
}
