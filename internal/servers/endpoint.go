package servers

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// checkEndpoint refuses an endpoint that isn't a URL of this machine. Tests create and
// delete data at the endpoint, so a forgotten setting must not point them at real data.
// A URL of another machine is accepted if the environment variable whose name is
// allowRemote has the value "1".
func checkEndpoint(endpoint, allowRemote string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("not a URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%q is not a URL like http://127.0.0.1:8000", endpoint)
	}
	if isLoopback(u.Hostname()) || Allowed(allowRemote) {
		return nil
	}
	return fmt.Errorf("host %q may be another machine, and tests write to it: use a loopback address, or set %s=1", u.Hostname(), allowRemote)
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Allowed reports whether an environment variable that lifts a safety rule is "1". No
// other value lifts the rule.
func Allowed(variable string) bool { return os.Getenv(variable) == "1" }

// Required reports whether an environment variable has a value other than "", "0" and
// "false".
func Required(variable string) bool {
	switch os.Getenv(variable) {
	case "", "0", "false":
		return false
	}
	return true
}

// Search is the error of a failed search for a server. It has a line for each source
// that was tried, which says why the source failed.
type Search struct{ tried []string }

// Miss adds a line for a source (what) and the reason why it failed.
func (s *Search) Miss(what string, why error) {
	s.tried = append(s.tried, "\n  "+what+": "+oneLine(why.Error()))
}

// Error returns all lines.
func (s Search) Error() string { return strings.Join(s.tried, "") }
