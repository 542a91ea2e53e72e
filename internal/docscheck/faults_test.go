package docscheck

import (
	"strings"
	"testing"
)

// The faults of leases, fences, checkpoints and leadership, by their numbers in the shared
// list: every one is prevented by a test, or there is a reason why not.
func TestEveryFaultOfTheElectionIsEntered(t *testing.T) {
	entered := map[string]bool{}
	for _, line := range strings.Split(read(t, "docs/faults.tsv"), "\n") {
		id, _, _ := strings.Cut(line, "\t")
		entered[id] = true
	}
	for family, numbers := range map[string]string{
		"C-": "01 02 03 04 05 07 08 09 10 11 12 13 14 15 16 17 18",
		"F-": "01 02 03 04 05 06 07 08 09",
		"L-": "01 02 03 04 05 06 07 08 09 10 11",
		"S-": "01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16",
		"X-": "01 02 03 04 05 06 07",
		"N-": "01 02 03 04 05 06 08 09 11 12 13 15 16 17 18 20 21 24 25 26 27 28 29",
		// What no test of upstream pinned goes by the number of its source.
		"SFL-": "0027 0028 0030 0031 0054 0055 0056 0057 0058",
		"":     "upstream-70 audit-rule",
		"A":    "1 2 3 4 5 6 7 8 9 10 11 12 13",
		"B":    "1 2 3 4 5 7 8 9 11 13 14",
		"C":    "1 3 4 5 6 7 8 10",
		"D":    "1 2 3 4 5 6 7 8 9 10 11 12",
		"E":    "1 2 3 4 5 6 7 8 10 11 13 14 15 16 17",
		"F":    "1 2 3 4 5 7 8 9 10 11 12 13 14 15 17 18 20",
		"G":    "1 2 3 4",
		"H":    "1 2 4 6 7 8",
		"I":    "2 3 5 7 9 10 11 12 13 14",
	} {
		for _, n := range strings.Fields(numbers) {
			if !entered[family+n] {
				t.Errorf("docs/faults.tsv lacks %s%s", family, n)
			}
		}
	}
}
