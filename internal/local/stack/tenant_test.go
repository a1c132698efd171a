package stack

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/internal/local/sam"
)

func perTenant(def *sam.Function) { def.PerTenant = true }

// A function that keeps tenants apart is told for whom it is invoked, and no process
// of it works for two of them.
func TestInvokeForATenant(t *testing.T) {
	t.Parallel()
	client, _ := serveInvoke(t, nil, startRole(t, "Apart", "tenant", perTenant))
	processes := make(map[string]string)
	for range 2 {
		for _, tenant := range []string{"jane", "omar"} {
			out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Apart"), TenantId: &tenant})
			if err != nil {
				t.Fatal(err)
			}
			who, pid, _ := strings.Cut(strings.Trim(string(out.Payload), `"`), " in ")
			if who != tenant {
				t.Errorf("invoked for %s, and told of %q", tenant, out.Payload)
			}
			if before := processes[pid]; before != "" && before != tenant {
				t.Errorf("a process of %s works for %s", before, tenant)
			}
			processes[pid] = tenant
		}
	}
	if len(processes) != 2 {
		t.Errorf("processes %v, want one for each tenant", processes)
	}
}

// Lambda demands a tenant of every invocation, or refuses any.
func TestTenantWhereThereIsNone(t *testing.T) {
	t.Parallel()
	apart, together := startRole(t, "Apart", "tenant", perTenant), startRole(t, "Together", "tenant", nil)
	client, async := serveInvoke(t, nil, apart, together)
	for name, in := range map[string]*lambda.InvokeInput{
		"none is named":                    {FunctionName: aws.String("Apart")},
		"none is named, in the background": {FunctionName: aws.String("Apart"), InvocationType: types.InvocationTypeEvent},
		"a name that is too long":          {FunctionName: aws.String("Apart"), TenantId: aws.String(strings.Repeat("x", 257))},
		"one is named for all":             {FunctionName: aws.String("Together"), TenantId: aws.String("jane")},
	} {
		_, err := client.Invoke(t.Context(), in)
		if _, ok := errors.AsType[*types.InvalidParameterValueException](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := async.close(); err != nil {
		t.Fatal(err)
	}
	if n := apart.invocations.Load() + together.invocations.Load(); n != 0 {
		t.Errorf("%d ran", n)
	}
}
