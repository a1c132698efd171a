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

	"github.com/samekey/samekey/internal/servers/ids"
)

const (
	defaultName           = "function"
	defaultTimeout        = 3 * time.Second
	defaultMaxConcurrency = 10
	defaultMemoryMB       = 128

	// maxPerProcess is Lambda's limit for PerProcess on Managed Instances.
	maxPerProcess = 1600
	// maxTimeout is Lambda's limit for Timeout.
	maxTimeout = 15 * time.Minute
	// initTimeout is how long Lambda waits for a new process to ask for work.
	initTimeout = 10 * time.Second
)

// Config describes a function to [Start]. Only Binary is required.
type Config struct {
	// Name is the function's name in its environment and its ARN. Default "function".
	Name string
	// Binary is the path of the bootstrap.
	Binary string
	// Dir is the folder with the function's other files. It is the process's working
	// directory and the value of LAMBDA_TASK_ROOT. Default: the folder of Binary.
	Dir string
	// Env holds more variables for the process, as "NAME=value". A variable in Env
	// replaces Lambda's variable of the same name. Env can't replace
	// AWS_LAMBDA_RUNTIME_API and, if PerProcess is above 1, AWS_LAMBDA_MAX_CONCURRENCY.
	// AWS_REGION, default us-east-1, also sets the region in the function's ARN. The
	// process gets no variables of this program.
	Env []string
	// Timeout is how long an invocation may take, not counting the start of the
	// process. After the timeout the process is killed, unless Overtime or PerProcess
	// prevents it. Default 3 s, at most 15 min.
	Timeout time.Duration
	// Overtime is how long an invocation may continue after its deadline before the
	// process is killed. Lambda allows no overtime. Overtime lets a test pause a
	// process until other processes take it for dead, and then continue the paused
	// process. Default 0.
	Overtime time.Duration
	// MaxConcurrency is the largest number of invocations in flight, and of processes.
	// Default 10.
	MaxConcurrency int
	// PerProcess is how many invocations a process runs at a time. Default 1, as in
	// Lambda. If the number is above 1, as on Lambda Managed Instances, the process
	// reads the number from AWS_LAMBDA_MAX_CONCURRENCY and asks for this many
	// invocations at once. In this case an invocation that times out fails for its
	// caller, but the process is not killed, and Overtime has no effect.
	PerProcess int
	// PerTenant separates tenants, like Lambda's tenant isolation: each invocation must
	// name a tenant ([ForTenant]), and a process works only for the tenant of its first
	// invocation. Default: no invocation may name a tenant.
	PerTenant bool
	// MemoryMB is passed to the process but not enforced. Default 128.
	MemoryMB int
	// Stdout and Stderr get the output of the processes; nil discards it. If one is an
	// *os.File, the processes inherit it. Any other writer is called by one goroutine at
	// a time, even if Stdout and Stderr are the same writer.
	Stdout, Stderr io.Writer

	after func(time.Duration) <-chan time.Time // makes the timers of deadlines; time.After, except in tests
}

// withDefaults returns c with its zero fields filled in, or an error for an invalid
// field.
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
	if c.Dir == "" {
		c.Dir = filepath.Dir(binary)
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, err
	}

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
	if c.after == nil {
		c.after = time.After
	}
	return c, nil
}

// Config.region returns the region in the function's environment.
func (c Config) region() string {
	region := ids.Region
	for _, v := range c.Env {
		if r, ok := strings.CutPrefix(v, "AWS_REGION="); ok && r != "" {
			region = r
		}
	}
	return region
}

// Config.environ returns the whole environment of a process. runtimeAPI is the address
// of the Runtime API. AWS_EXECUTION_ENV is missing, as in Lambda's OS-only runtimes.
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
		"LAMBDA_TASK_ROOT=" + c.Dir,
		"LANG=en_US.UTF-8",
		"PATH=/usr/local/bin:/usr/bin:/bin:/opt/bin",
		"TZ=:UTC",
		"_HANDLER=bootstrap",
	}
	// The process gets the last entry of a name, so c.Env replaces the entries above.
	env = append(env, c.Env...)
	if c.PerProcess > 1 {
		env = append(env, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(c.PerProcess))
	}
	return append(env, "AWS_LAMBDA_RUNTIME_API="+runtimeAPI)
}

func functionARN(region, name string) string {
	return "arn:aws:lambda:" + region + ":" + ids.AccountID + ":function:" + name
}
