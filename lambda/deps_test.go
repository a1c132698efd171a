package lambda_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A function that needs no table of ours must not carry the AWS SDK.
func TestDependencies(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	allowed := []string{
		"github.com/samekey/samekey/idem", "github.com/samekey/samekey/idem/store", "github.com/samekey/samekey/idem/jobs", "github.com/samekey/samekey/internal/trace", "github.com/samekey/samekey/internal/meter",
		"github.com/samekey/samekey/internal/state", "github.com/samekey/samekey/internal/base/redact", "github.com/samekey/samekey/internal/base/errlist", "github.com/samekey/samekey/internal/base/hook", "github.com/samekey/samekey/internal/base/chance", "github.com/samekey/samekey/internal/base/asleep", "github.com/samekey/samekey/internal/base/storedheaders", "github.com/samekey/samekey/internal/base/unnamed",
		"github.com/samekey/samekey/internal/base/scope", "github.com/samekey/samekey/internal/base/secrets", "github.com/samekey/samekey/internal/base/shape", "github.com/samekey/samekey/internal/base/defaults", "github.com/samekey/samekey/internal/base/recorder", "github.com/samekey/samekey/internal/base/retrysign", "github.com/samekey/samekey/internal/base/lru",
		"github.com/samekey/samekey/lambda", "github.com/samekey/samekey/internal/envelope", "github.com/samekey/samekey/internal/base/rawjson",
		"github.com/aws/aws-lambda-go/", "github.com/dunglas/httpsfv",
	}
	for dep := range strings.FieldsSeq(string(out)) {
		ok := false
		for _, a := range allowed {
			ok = ok || dep == a || strings.HasSuffix(a, "/") && strings.HasPrefix(dep, a)
		}
		if !ok {
			t.Errorf("package lambda depends on %s", dep)
		}
	}
}
