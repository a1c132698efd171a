package lambdarun

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNoProcessWorksForTwoTenants(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"one invocation at a time": func(*Config) {},
		"several":                  func(c *Config) { c.PerProcess = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, func(c *Config) {
				c.PerTenant = true
				change(c)
			})
			of := make(map[string]int)
			for range 2 {
				for _, tenant := range []string{"jane", "omar"} {
					got, err := invoke(ForTenant(t.Context(), tenant), f, testEvent{Op: "describe"})
					if err != nil {
						t.Fatal(err)
					}
					if got.Tenant != tenant {
						t.Errorf("%s's invocation is told %q", tenant, got.Tenant)
					}
					if of[tenant] == 0 {
						of[tenant] = got.PID
					} else if of[tenant] != got.PID {
						t.Errorf("%s's process isn't used again", tenant)
					}
				}
			}
			if of["jane"] == of["omar"] {
				t.Error("two tenants share a process")
			}
		})
	}
}

// A tenant that is idle has no claim to a process.
func TestIdleProcessMakesRoomForAnotherTenant(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *Config) { c.PerTenant, c.MaxConcurrency = true, 2 })
	var pids []int
	for _, tenant := range []string{"jane", "omar", "ada", "jane"} {
		got, err := invoke(ForTenant(t.Context(), tenant), f, testEvent{Op: "describe"})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(pids, got.PID) {
			t.Errorf("a process works for %s and for another", tenant)
		}
		pids = append(pids, got.PID)
	}
	for want := pids[2:]; len(f.PIDs()) > 2; {
		select {
		case <-t.Context().Done():
			t.Fatalf("processes %v, want %v", f.PIDs(), want)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestInvocationOfTheWrongTenant(t *testing.T) {
	t.Parallel()
	apart, together := start(t, func(c *Config) { c.PerTenant = true }), start(t, nil)
	for _, tt := range []struct {
		f      *Function
		tenant string
	}{{apart, ""}, {apart, strings.Repeat("x", 257)}, {apart, "a;b"}, {apart, "a\nb"}, {together, "jane"}} {
		if _, err := invoke(ForTenant(t.Context(), tt.tenant), tt.f, testEvent{Op: "echo"}); !errors.Is(err, ErrTenant) {
			t.Errorf("%q: got %v", tt.tenant, err)
		}
	}
	if pids := slices.Concat(apart.PIDs(), together.PIDs()); len(pids) != 0 {
		t.Errorf("it ran in %v", pids)
	}
	if _, err := invoke(ForTenant(t.Context(), strings.Repeat("x", 256)), apart, testEvent{Op: "echo"}); err != nil {
		t.Error(err)
	}
}
