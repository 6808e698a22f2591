// Package subtests has a test with subtests of which one fails.
package subtests

import "testing"

func TestTable(t *testing.T) {
	for _, name := range []string{"good", "bad"} {
		t.Run(name, func(t *testing.T) {
			if name == "bad" {
				t.Fatal("as it should")
			}
		})
	}
}
