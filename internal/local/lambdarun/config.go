package lambdarun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/local/ids"
)

const (
	defaultName           = "function"
	defaultTimeout        = 3 * time.Second
	defaultMaxConcurrency = 10
	defaultMemoryMB       = 128

	// maxPerProcess is Lambda's, on Managed Instances.
	maxPerProcess = 1600
	// maxTimeout is Lambda's.
	maxTimeout = 15 * time.Minute
	// initTimeout is what Lambda gives a process until it asks for work.
	initTimeout = 10 * time.Second
)

// Config describes a function to [Start]. Only Binary is required.
type Config struct {
	// Name is the function's name, seen in its environment and its ARN.
	// Default "function".
	Name string
	// Binary is the path of the bootstrap. Its folder becomes the process's
	// working directory and LAMBDA_TASK_ROOT.
	Binary string
	// Env holds more variables for the process, as "NAME=value"; they win over
	// Lambda's own, except AWS_LAMBDA_RUNTIME_API. The parent's environment is
	// not passed on. AWS_REGION, default us-east-1, also sets the ARN's region.
	Env []string
	// Timeout is how long an invocation may take; the sandbox is killed then.
	// Starting a process does not count. Default 3 s, at most 15 min.
	Timeout time.Duration
	// Overtime is for how long beyond its deadline an invocation may go on before
	// the sandbox is killed. Lambda gives none; with it, tests can stop a process
	// and wake it when others believe it dead. Default 0.
	Overtime time.Duration
	// MaxConcurrency is how many invocations may be in flight, and with that
	// how many processes there are at most. Default 10.
	MaxConcurrency int
	// PerProcess is how many invocations one process runs at a time. Default 1, as
	// Lambda does it. More is what Lambda Managed Instances do: the process is told
	// the number in AWS_LAMBDA_MAX_CONCURRENCY and asks for as many invocations at
	// once; one that times out fails for its caller, and its process is not killed
	// but works on, so Overtime has no meaning.
	PerProcess int
	// PerTenant keeps tenants apart, as Lambda's tenant isolation does: each
	// invocation is for one ([ForTenant]), and a process works for no other than its
	// first. Default: there are no tenants.
	PerTenant bool
	// MemoryMB is told to the process but not enforced. Default 128.
	MemoryMB int
	// Stdout and Stderr take what the processes write; nil discards it. Unless
	// it is an *os.File, which the processes inherit, a writer is called by one
	// goroutine at a time, even where both are the same.
	Stdout, Stderr io.Writer
}

// withDefaults returns c with its zero fields filled in, or an error that says
// what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.Binary == "" {
		return c, errors.New("no binary")
	}
	binary, err := filepath.Abs(c.Binary)
	if err != nil {
		return c, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return c, err
	}
	if info.IsDir() {
		return c, fmt.Errorf("%s is a directory", c.Binary)
	}
	c.Binary = binary

	if c.Timeout < 0 || c.Timeout > maxTimeout {
		return c, fmt.Errorf("timeout %s is not within 0 and %s", c.Timeout, maxTimeout)
	}
	if c.Overtime < 0 {
		return c, fmt.Errorf("overtime %s is negative", c.Overtime)
	}
	if c.MaxConcurrency < 0 {
		return c, fmt.Errorf("concurrency %d is negative", c.MaxConcurrency)
	}
	if c.PerProcess < 0 || c.PerProcess > maxPerProcess {
		return c, fmt.Errorf("%d invocations in a process are not within 0 and %d", c.PerProcess, maxPerProcess)
	}
	if c.MemoryMB < 0 {
		return c, fmt.Errorf("memory %d is negative", c.MemoryMB)
	}
	for _, v := range c.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return c, fmt.Errorf("environment entry %q is not NAME=value", v)
		}
	}

	if c.Name == "" {
		c.Name = defaultName
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxConcurrency == 0 {
		c.MaxConcurrency = defaultMaxConcurrency
	}
	if c.PerProcess == 0 {
		c.PerProcess = 1
	}
	if c.MemoryMB == 0 {
		c.MemoryMB = defaultMemoryMB
	}
	return c, nil
}

// region returns the region the function believes to be in.
func (c Config) region() string {
	region := ids.Region
	for _, v := range c.Env {
		if r, ok := strings.CutPrefix(v, "AWS_REGION="); ok && r != "" {
			region = r
		}
	}
	return region
}

// environ returns the whole environment of a process that finds its Runtime API
// at the given address. As in Lambda, an OS-only runtime gets no
// AWS_EXECUTION_ENV.
func (c Config) environ(runtimeAPI, logStream string) []string {
	region, initialization := c.region(), "on-demand"
	if c.PerProcess > 1 {
		initialization = "lambda-managed-instances"
	}
	env := []string{
		"AWS_DEFAULT_REGION=" + region,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(c.MemoryMB),
		"AWS_LAMBDA_FUNCTION_NAME=" + c.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_INITIALIZATION_TYPE=" + initialization,
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + c.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME=" + logStream,
		"AWS_REGION=" + region,
		"LAMBDA_RUNTIME_DIR=/var/runtime",
		"LAMBDA_TASK_ROOT=" + filepath.Dir(c.Binary),
		"LANG=en_US.UTF-8",
		"PATH=/usr/local/bin:/usr/bin:/bin:/opt/bin",
		"TZ=:UTC",
		"_HANDLER=bootstrap",
	}
	// The last entry of a name wins.
	env = append(env, c.Env...)
	if c.PerProcess > 1 {
		env = append(env, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(c.PerProcess))
	}
	return append(env, "AWS_LAMBDA_RUNTIME_API="+runtimeAPI)
}

func functionARN(region, name string) string {
	return "arn:aws:lambda:" + region + ":" + ids.AccountID + ":function:" + name
}
