package rules

import (
	"slices"
	"testing"
)

// A function's client reads the environment only. The SDK's config, which also
// reads files and asks services, is for the command, which is another module.
func TestNothingLinksTheConfigModule(t *testing.T) {
	t.Parallel()
	all, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for pkg, deps := range all {
		if slices.Contains(deps, "github.com/aws/aws-sdk-go-v2/config") {
			got = append(got, pkg)
		}
	}
	if len(got) > 0 {
		t.Errorf("%v link the SDK's config, want none", got)
	}
}
