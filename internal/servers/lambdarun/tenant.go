package lambdarun

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// ErrTenant matches the error of an invocation with a wrong tenant. An invocation must
// name a valid tenant if the function separates tenants ([Config.PerTenant]). Otherwise
// the invocation must not name a tenant. The function did not run.
var ErrTenant = errors.New("wrong tenant")

// validTenant is Lambda's rule for tenants.
var validTenant = regexp.MustCompile(`^[a-zA-Z0-9._:/=+\-@ ]{1,256}$`)

type tenantKey struct{}

// ForTenant returns a context whose invocations are for a tenant; "" means none.
func ForTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

func tenantOf(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}

// CheckTenant returns the [ErrTenant] error that Invoke would return, but invokes nothing.
func (f *Function) CheckTenant(ctx context.Context) error {
	tenant := tenantOf(ctx)
	switch c := f.cfg; {
	case c.PerTenant && tenant == "":
		return fmt.Errorf("%w: the function separates tenants, but the invocation names none", ErrTenant)
	case c.PerTenant && !validTenant.MatchString(tenant):
		return fmt.Errorf("%w: %q is not a tenant's id", ErrTenant, tenant)
	case !c.PerTenant && tenant != "":
		return fmt.Errorf("%w: the function does not separate tenants, but the invocation names one", ErrTenant)
	}
	return nil
}
