package progress

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Duration prints a time as lines of progress show it: "12 ms", "3.40 s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// Left says what time is left of work of which done of total parts, alike in length, took so long: ", about 40 s left".
// It is "" as long as nothing is known, and when all is done.
func Left(took time.Duration, done, total int) string {
	if done <= 0 || done >= total {
		return ""
	}
	left := time.Duration(float64(took) / float64(done) * float64(total-done))
	switch {
	case left < time.Minute:
		return fmt.Sprintf(", about %d s left", int(math.Ceil(left.Seconds())))
	case left < time.Hour:
		return fmt.Sprintf(", about %d min left", int(math.Ceil(left.Minutes())))
	}
	return fmt.Sprintf(", about %.1f h left", left.Hours())
}

// Count prints a number of things with the noun in singular or plural: "1 segment", "2 segments", "2 launches".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bytes prints a number of bytes with a unit of powers of 1024: "512 B", "21.3 KB", "97.5 MB".
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GB", float64(n)/(1<<30))
}
