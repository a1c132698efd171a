package sink_test

import (
	"context"
	"testing"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/lambda/sink"
)

type tenants struct{ got []string }

func (f *tenants) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	tenant := "none"
	if in.TenantId != nil {
		tenant = *in.TenantId
	}
	f.got = append(f.got, tenant)
	return &awslambda.InvokeOutput{StatusCode: 202}, nil
}

// A tenant's job is invoked for that tenant: a function that keeps tenants apart
// takes it in no other way.
func TestFunctionIsInvokedForTheJobsTenant(t *testing.T) {
	t.Parallel()
	batch := deliveries(2)
	batch[1].Tenant = "jane"
	for name, tt := range map[string]struct {
		opt  func(*sink.FunctionOptions)
		want string
	}{
		"by default":    {func(*sink.FunctionOptions) {}, "jane"},
		"without asked": {func(o *sink.FunctionOptions) { o.WithoutTenant = true }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &tenants{}
			for i, err := range sink.NewFunction(f, "mails", tt.opt).Deliver(t.Context(), batch) {
				if err != nil {
					t.Errorf("job %d: %v", i, err)
				}
			}
			if len(f.got) != 2 || f.got[0] != "none" || f.got[1] != tt.want {
				t.Errorf("invoked for %q", f.got)
			}
		})
	}
}
