package sam

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Function is a Lambda function.
type Function struct {
	ID, Name, ARN string
	// Bootstrap is the path of the binary. This package doesn't check that the binary can
	// be run; its callers do.
	Bootstrap string
	// Root is the folder of the files that are deployed beside the binary. It is "" if
	// they are in the binary's folder.
	Root string
	// Source is the Go package to build Bootstrap from; zero if another tool builds
	// Bootstrap.
	Source      Source
	Environment map[string]string
	Timeout     time.Duration
	MemoryMB    int
	// Concurrency is the reserved concurrency; 0 for none.
	Concurrency int
	// PerProcess is how many invocations one process runs at a time. For a function on
	// Lambda Managed Instances, it is the number in CapacityProviderConfig, or
	// DefaultPerProcess if there is no number. For other functions it is 0.
	PerProcess int
	Async      Async
	// PerTenant is true if each invocation names a tenant, and a process works for one
	// tenant only.
	PerTenant bool
	Events    []Event
	// Notes say which properties and events have no effect here.
	Notes []string
}

// Source is the Go package of a function.
type Source struct {
	// Package is the package's path for a go command that runs in Dir.
	Package, Dir string
}

// DefaultPerProcess is the PerProcess of a function on Managed Instances for which the
// template sets no number.
const DefaultPerProcess = 16

// Async says what happens to asynchronous invocations that fail.
type Async struct {
	Retries int           // 0 to 2; 2 by default
	MaxAge  time.Duration // 6 h by default
	// OnFailure is the ARN of the destination for events that failed; "" if there is none.
	OnFailure string
}

// Async.read reads the configuration of asynchronous invocations.
func (a *Async) read(p *props) {
	if n, ok := p.integer("MaximumRetryAttempts"); ok {
		a.Retries = n
	}
	if s := p.seconds("MaximumEventAgeInSeconds"); s > 0 {
		a.MaxAge = s
	}
	a.OnFailure = destination(p)
}

// functionProperties are the properties of a function that get no note "has no effect
// here", because this package reads them, or because they mean nothing on one machine.
var functionProperties = []string{
	"AssumeRolePolicyDocument", "Architectures", "AutoPublishAlias", "AutoPublishAliasAllProperties", "AutoPublishCodeSha256",
	"CapacityProviderConfig", "Code", "CodeSigningConfigArn", "CodeUri", "DeploymentPreference", "Description", "Environment", "EphemeralStorage", "EventInvokeConfig",
	"Events", "FunctionName", "Handler", "KmsKeyArn", "LoggingConfig", "MemorySize", "PackageType", "PermissionsBoundary", "Policies",
	"PropagateTags", "ProvisionedConcurrencyConfig", "RecursiveLoop", "ReservedConcurrentExecutions", "Role", "RolePath", "Runtime",
	"RuntimeManagementConfig", "SnapStart", "SourceKMSKeyArn", "Tags", "TenancyConfig", "Timeout", "Tracing", "TracingConfig", "VersionDescription", "VpcConfig",
}

// Functions returns the template's functions in the template's order, and after them the
// functions of nested templates.
func (t *Template) Functions() ([]Function, error) {
	var out []Function
	var errs []error
	for in := range t.all() {
		for _, r := range in.resources {
			if !isFunction(r.kind) {
				continue
			}
			f, err := in.function(r)
			out = append(out, f)
			errs = append(errs, err)
		}
	}
	for in := range t.all() {
		errs = append(errs, in.connect(out))
	}
	return out, errors.Join(errs...)
}

func (t *Template) function(r resource) (Function, error) {
	p := t.props(r)
	f := Function{ID: t.full(r.id), Timeout: 3 * time.Second, MemoryMB: 128, Async: Async{Retries: 2, MaxAge: 6 * time.Hour}}
	var err error
	if f.Name, err = t.name(r); err != nil {
		return f, err
	}
	f.ARN = t.arn("lambda", "function:"+f.Name)
	if p.str("PackageType") == "Image" || child(p.node, "ImageUri") != nil || child(p.node, "InlineCode") != nil {
		p.fail("", errors.New("samekey local runs only functions with a bootstrap in a folder, no images and no inline code"))
	} else if runtime := p.str("Runtime"); !strings.HasPrefix(runtime, "provided") {
		p.fail("Runtime", fmt.Errorf("%q: samekey local runs only bootstraps, such as provided.al2023", runtime))
	} else {
		t.code(&f, p, r)
	}
	f.Environment = t.environment(p)
	if s := p.seconds("Timeout"); s > 0 {
		f.Timeout = s
	}
	if mb := p.number("MemorySize"); mb > 0 {
		f.MemoryMB = mb
	}
	if n, ok := p.integer("ReservedConcurrentExecutions"); ok {
		f.Concurrency = n
		if n < 1 {
			p.fail("ReservedConcurrentExecutions", errors.New("the function could never run"))
		}
	}
	if p.has("CapacityProviderConfig") {
		f.PerProcess = DefaultPerProcess
		if n, ok := p.mapping("CapacityProviderConfig").integer("PerExecutionEnvironmentMaxConcurrency"); ok {
			f.PerProcess = n
		}
	}
	f.PerTenant = p.mapping("TenancyConfig").str("TenantIsolationMode") == "PER_TENANT"
	if f.PerTenant && p.has("Events") {
		f.Notes = append(f.Notes, "TenancyConfig: no event names a tenant here, so the function refuses them; the Invoke API takes X-Amz-Tenant-Id")
	}
	f.Async.read(p.mapping("EventInvokeConfig"))
	for name := range entries(p.node) {
		if !slices.Contains(functionProperties, name) {
			f.Notes = append(f.Notes, name+" has no effect here")
		}
	}
	t.events(&f, p.mapping("Events"))
	return f, p.err()
}

// Template.code finds the binary and the files beside it. If the template names the Go
// package, or tells sam build that CodeUri is a Go package, the binary is built from
// source. Otherwise the binary is in the output folder of sam build or, if it isn't
// there, in CodeUri.
//
// SkipBuild tells sam build to deploy CodeUri unchanged. With SkipBuild, the files
// beside the binary are in CodeUri. A binary that isn't built from source is in
// CodeUri, too.
func (t *Template) code(f *Function, p *props, r resource) {
	code := "CodeUri"
	if r.kind == typeLambda {
		code = "Code"
	}
	dir, _ := p.value(code).(string)
	if dir == "" || strings.Contains(dir, "://") {
		p.fail(code, errors.New("must be a folder with a bootstrap"))
		return
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(t.dir, dir)
	}
	metadata := &props{t: t, path: r.id + ".Metadata", node: child(r.node, "Metadata"), errs: p.errs}
	own, asItIs := filepath.Join(dir, "bootstrap"), metadata.boolean("SkipBuild")
	if source, ok := t.source(metadata, dir); ok {
		f.Bootstrap, f.Source = t.built("samekey", r), source
		if asItIs && exists(dir) { // before the first build, the folder may be missing
			f.Root = dir
		}
		return
	}
	f.Bootstrap = t.built("build", r)
	if asItIs || !exists(f.Bootstrap) && exists(own) {
		f.Bootstrap = own
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Template.built returns the path of a function's binary below .aws-sam. The parameter
// by is a folder in .aws-sam: "samekey" if samekey builds the binary, "build" if sam
// build does.
func (t *Template) built(by string, r resource) string {
	return filepath.Join(t.outermost.dir, ".aws-sam", by, strings.ReplaceAll(t.full(r.id), ".", string(filepath.Separator)), "bootstrap")
}

// Template.source returns the Go package of a function with this metadata. It returns
// false if the metadata names no package. The parameter dir is the folder that CodeUri
// names.
//
// The metadata's key GoPackage is samekey's own: sam build doesn't know it. Its value
// is an import path or, if it begins with ./ or ../, a folder relative to the template.
func (t *Template) source(metadata *props, dir string) (Source, bool) {
	if pkg := metadata.str("GoPackage"); pkg != "" {
		if strings.HasPrefix(pkg, "./") || strings.HasPrefix(pkg, "../") {
			return Source{Package: ".", Dir: filepath.Join(t.dir, pkg)}, true
		}
		return Source{Package: pkg, Dir: t.dir}, true
	}
	if !metadata.boolean("SkipBuild") && metadata.str("BuildMethod") == "go1.x" {
		return Source{Package: ".", Dir: dir}, true
	}
	return Source{}, false
}

// The names in reserved are variables that Lambda sets.
var reserved = []string{
	"AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_NAME",
	"AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME", "AWS_LAMBDA_RUNTIME_API",
	"AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT", "_HANDLER", "_X_AMZN_TRACE_ID",
}

var nameOfVariable = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]+$`)

// maxEnvironment is the largest total size of a function's variables, in bytes.
const maxEnvironment = 4096

// Template.environment returns a function's variables. It refuses variables that AWS
// would refuse.
func (t *Template) environment(p *props) map[string]string {
	variables := p.mapping("Environment").mapping("Variables")
	out := maps.Clone(t.opts.Environment)
	if out == nil {
		out = make(map[string]string)
	}
	size := 1 // Lambda measures the variables as JSON
	for name := range entries(variables.node) {
		switch {
		case slices.Contains(reserved, name):
			variables.fail(name, errors.New("refused by Lambda: the name is reserved"))
		case !nameOfVariable.MatchString(name):
			variables.fail(name, errors.New("refused by Lambda: a name has two or more letters, digits and underscores, and begins with a letter"))
		}
		if _, replaced := t.opts.Environment[name]; replaced {
			continue
		}
		if v := variables.value(name); v != nil {
			s, err := text(v)
			if err != nil {
				variables.fail(name, err)
			}
			out[name] = s
			size += len(name) + len(s) + len(`"":"",`)
		}
	}
	if size > maxEnvironment {
		variables.fail("", fmt.Errorf("refused by Lambda: %d bytes as JSON, at most %d", size, maxEnvironment))
	}
	return out
}

// destination returns the ARN of the OnFailure target in a mapping's or function's
// DestinationConfig. It reports an error if only a Type is given, for which SAM would
// create a target.
func destination(p *props) string {
	on := p.mapping("DestinationConfig").mapping("OnFailure")
	arn := on.str("Destination")
	if arn == "" && on.str("Type") != "" {
		on.fail("", errors.New("name a Destination: samekey local doesn't make SAM's default destination"))
	}
	return arn
}
