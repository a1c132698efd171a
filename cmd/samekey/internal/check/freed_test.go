package check

import (
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
)

// The statuses that leave a key free are those of the engine's presets.
func TestFreedAsTheEngineFrees(t *testing.T) {
	t.Parallel()
	var stripe idem.Options
	idem.Stripe(&stripe)
	for contract, stored := range map[string]func(idem.Response) bool{Default: idem.DefaultStored, Stripe: stripe.Stored} {
		for status := 400; status < 500; status++ {
			if free := slices.Contains(freed(status), contract); free == stored(idem.Response{Status: status}) {
				t.Errorf("%s, %d: free: %t, stored by the engine: %t", contract, status, free, !free)
			}
		}
	}
}
